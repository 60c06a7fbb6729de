//! Names in Chinese, Japanese and Korean. They are written without blanks, and their last
//! characters tell what they denote: 注文番号 is the number of an order, 注文日時 its time.

use crate::evaluate::roles::names::hint::Hint;

/// Endings by what they denote; the first that fits decides.
const ENDINGS: &[(Hint, &[&str])] = &[
    (Hint::Line, &["明細番号", "明细号", "明細行", "行番号", "行号", "行號", "枝番", "序号", "序號", "순번"]),
    (
        Hint::Text,
        &["備考", "备注", "備註", "摘要", "説明", "说明", "說明", "描述", "内容", "コメント", "비고", "설명"],
    ),
    (Hint::Dimension, &["電話番号", "郵便番号", "우편번호", "邮编"]),
    (
        Hint::Identifier,
        &["番号", "编号", "編號", "号码", "號碼", "单号", "單號", "번호", "识别码", "識別子", "帳號", "账号"],
    ),
    (
        Hint::Time,
        &[
            "日時",
            "日付",
            "時刻",
            "年月日",
            "時間",
            "时间",
            "日期",
            "날짜",
            "일시",
            "일자",
            "시간",
            "期日",
            "日",
        ],
    ),
    (
        Hint::Measure,
        &[
            "数量", "數量", "金額", "金额", "単価", "单价", "單價", "価格", "价格", "價格", "合計", "合计",
            "税額", "税额", "残高", "余额", "餘額", "重量", "距離", "距离", "温度", "溫度", "比率", "点数",
            "수량", "금액", "단가", "가격", "합계", "잔액", "중량", "거리", "온도",
        ],
    ),
    (
        Hint::Dimension,
        &[
            "区分",
            "種別",
            "種類",
            "类型",
            "類型",
            "类别",
            "類別",
            "分類",
            "分类",
            "方法",
            "方式",
            "状態",
            "状态",
            "狀態",
            "ステータス",
            "フラグ",
            "性別",
            "性别",
            "都道府県",
            "国籍",
            "等级",
            "유형",
            "구분",
            "분류",
            "상태",
            "방법",
            "방식",
            "성별",
        ],
    ),
    (
        Hint::Entity,
        &[
            "会員",
            "顧客",
            "得意先",
            "患者",
            "社員",
            "ユーザー",
            "店舗",
            "商品",
            "客户",
            "客戶",
            "用户",
            "用戶",
            "会员",
            "员工",
            "设备",
            "設備",
            "门店",
            "고객",
            "회원",
            "사용자",
            "환자",
            "직원",
            "매장",
        ],
    ),
];

/// Endings of the names of things.
const LABELS: &[&str] = &["名", "名前", "名称", "名稱", "氏名", "姓名", "이름", "성명", "품명", "상품명"];

/// People and devices, which come back.
const RECURRING: &[&str] = &[
    "会員",
    "顧客",
    "得意先",
    "患者",
    "社員",
    "従業員",
    "ユーザ",
    "端末",
    "客户",
    "客戶",
    "用户",
    "用戶",
    "会员",
    "會員",
    "员工",
    "設備",
    "设备",
    "고객",
    "회원",
    "사용자",
    "환자",
    "직원",
];

/// Things with parts: slips, receipts, orders, sessions.
const WHOLES: &[&str] = &[
    "伝票",
    "レシート",
    "注文",
    "受注",
    "発注",
    "請求書",
    "セッション",
    "订单",
    "訂單",
    "发票",
    "會話",
    "会话",
    "运单",
    "주문",
    "영수증",
    "송장",
    "전표",
];

/// Whether a name is written in such a script.
fn is_unspaced(name: &str) -> bool {
    let is_in_script =
        |c: char| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}');
    name.chars().any(is_in_script)
}

/// The name without what follows in brackets, as units do.
fn trimmed(name: &str) -> &str {
    name.split(['(', '（', '[', '［']).next().unwrap_or(name).trim_end()
}

/// Returns the role that a name in such a script suggests.
pub(super) fn hint_of_unspaced(name: &str) -> Option<Hint> {
    if !is_unspaced(name) || is_unspaced_label(name) {
        return None;
    }
    let name = trimmed(name);
    ENDINGS.iter().find_map(|(hint, endings)| ends_with_one(name, endings).then_some(*hint))
}

/// Whether a name in such a script denotes the name of a thing.
pub(super) fn is_unspaced_label(name: &str) -> bool {
    is_unspaced(name) && ends_with_one(trimmed(name), LABELS)
}

/// Whether a name in such a script denotes a thing that recurs.
pub(super) fn unspaced_recurs(name: &str) -> bool {
    identifies_one_of(name, RECURRING)
}

/// Whether a name in such a script denotes a thing whose rows are its parts.
pub(super) fn is_unspaced_whole(name: &str) -> bool {
    identifies_one_of(name, WHOLES)
}

fn identifies_one_of(name: &str, things: &[&str]) -> bool {
    let is_identifier =
        hint_of_unspaced(name) == Some(Hint::Identifier) || name.to_lowercase().ends_with("id");
    let is_code = ["コード", "代码", "代碼", "코드"].iter().any(|code| trimmed(name).ends_with(code));
    is_unspaced(name)
        && things.iter().any(|thing| {
            trimmed(name).ends_with(thing) || ((is_identifier || is_code) && name.contains(thing))
        })
}

fn ends_with_one(name: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_characters_tell() {
        for (name, hint) in [
            ("レシート番号", Some(Hint::Identifier)),
            ("明細番号", Some(Hint::Line)),
            ("取引日時", Some(Hint::Time)),
            ("取引日", Some(Hint::Time)),
            ("金額（税込）", Some(Hint::Measure)),
            ("支払方法", Some(Hint::Dimension)),
            ("商品名", None),
            ("订单编号", Some(Hint::Identifier)),
            ("下单时间", Some(Hint::Time)),
            ("客户", Some(Hint::Entity)),
            ("备注", Some(Hint::Text)),
            ("고객번호", Some(Hint::Identifier)),
            ("수량", Some(Hint::Measure)),
            ("JANコード", None),
            ("user_id", None),
            ("", None),
        ] {
            assert_eq!(hint_of_unspaced(name), hint, "{name}");
        }
        assert!(
            is_unspaced_label("商品名") && is_unspaced_label("客户名称") && !is_unspaced_label("名簿番号")
        );
        for (name, recurs, is_whole) in [
            ("会員番号", true, false),
            ("顧客コード", true, false),
            ("用户ID", true, false),
            ("伝票番号", false, true),
            ("주문번호", false, true),
            ("注文日時", false, false),
            ("会員区分", false, false),
            ("order_id", false, false),
        ] {
            assert_eq!((unspaced_recurs(name), is_unspaced_whole(name)), (recurs, is_whole), "{name}");
        }
    }
}
