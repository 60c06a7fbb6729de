//! Exports of advertising: its events, clicks and impressions.

use arrow::array::RecordBatch;

use crate::columns::{
    DAY, START, amounts, choice, codes, export, flags, floats, int32, int64, rising, seconds, serial,
    shuffled, signed, sorted, texts, times, uniform, uuids, with_nulls, zipf,
};
use crate::exports::{Case, amounts_of, by_group};

fn ad_events() -> RecordBatch {
    let rows = 60_000;
    let ads = zipf(rows, 400, 0.6, 3);
    export(vec![
        ("event_id", uuids(rows, 1)),
        ("event_timestamp", times(rising(rows, 1.5, 2))),
        ("user_id", codes("user", &uniform(rows, 6_000, 4))),
        ("campaign_id", codes("camp", &by_group(&ads, 40, 5))),
        ("ad_id", codes("ad", &ads)),
        ("event_type", choice(rows, &["impression", "click", "conversion"], 6)),
        ("cost_micros", amounts(rows, 900.0, 7)),
        ("country", choice(rows, &["DE", "US", "FR", "IN", "BR", "JP"], 8)),
    ])
}

/// The first minutes of a network with many users, few of whom came back yet.
fn first_events() -> RecordBatch {
    let rows = 3_000;
    let ads = zipf(rows, 400, 0.6, 13);
    export(vec![
        ("user_id", codes("user", &uniform(rows, 20_000, 14))),
        ("event_timestamp", times(rising(rows, 0.3, 12))),
        ("event_id", serial(rows)),
        ("campaign_id", int64(by_group(&ads, 40, 15))),
        ("ad_id", int64(ads)),
        ("event_type", choice(rows, &["impression", "click"], 16)),
    ])
}

fn clicks() -> RecordBatch {
    let rows = 60_000;
    export(vec![
        ("ip", int64(zipf(rows, 12_000, 0.8, 1))),
        ("app", int32(zipf(rows, 200, 1.1, 2))),
        ("device", int32(zipf(rows, 60, 1.5, 3))),
        ("os", int32(zipf(rows, 80, 1.1, 4))),
        ("channel", int32(zipf(rows, 160, 0.8, 5))),
        ("click_time", seconds(rising(rows, 0.4, 6))),
        ("attributed_time", with_nulls(&times(rising(rows, 0.4, 7)), 0.998, 8)),
        ("is_attributed", flags(rows, 9)),
    ])
}

fn copies() -> RecordBatch {
    let batch = ad_events();
    let again = batch.slice(0, 600);
    arrow::compute::concat_batches(&batch.schema(), [&batch, &again]).unwrap()
}

/// Counts of a day, a provider and an audience.
fn daily_mailings() -> RecordBatch {
    let rows = 6_300;
    let sent = amounts_of(rows, 30_000, 591);
    let part = |of: u64, seed: u64| {
        int32(sent.iter().zip(uniform(rows, 90, seed)).map(move |(sent, share)| sent * (10 + share) / of))
    };
    let word = |words: &'static [&'static str], every: usize| {
        texts((0..rows).map(move |row| words[row / every % words.len()].to_owned()))
    };
    export(vec![
        ("send_day", times((0..rows as i64).map(|row| START + row / 15 * DAY))),
        ("provider", word(&["gmail", "gmx", "web.de", "yahoo", "other"], 1)),
        ("audience", word(&["new", "regular", "lapsed"], 5)),
        ("sent", int32(sent.iter().copied())),
        ("delivered", part(105, 592)),
        ("bounced", part(9_000, 593)),
        ("opened", part(400, 594)),
        ("clicked", part(4_000, 595)),
        ("unsubscribed", part(60_000, 596)),
    ])
}

/// Impressions of advertisements, with features that have numbers for names and say no more than
/// the campaign, and times since the first row.
fn featured_impressions() -> RecordBatch {
    let rows = 30_000;
    let campaign = zipf(rows, 640, 0.5, 481);
    let user = zipf(rows, 11_000, 0.3, 482);
    let feature = |values: u64, salt: u64| {
        int64(
            campaign
                .iter()
                .map(move |at| at.wrapping_mul(2_654_435_761).wrapping_add(salt) % 30_000_000 / values),
        )
    };
    export(vec![
        (
            "timestamp",
            signed(rising(rows, 4.0, 483).into_iter().map(|micros| micros / 1_000_000 - 1_767_225_600)),
        ),
        ("uid", int64(user.iter().map(|user| user * 2_711 % 30_000_000))),
        ("campaign", int64(campaign.iter().map(|at| at * 46_337 % 32_000_000))),
        ("cost", floats(rows, 0.001, 0.0002, 484)),
        ("cat1", feature(1, 7)),
        ("cat2", feature(1, 19)),
        ("cat3", feature(1, 31)),
        ("cat4", feature(1, 43)),
        ("cat5", feature(1, 57)),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(
            "ad events",
            ad_events,
            &[&["user_id"]],
            never & ["cost_micros"],
            by & [&["event_id"]],
            "users are looked up, grouped and joined"
        ),
        case!(
            "ad events, shuffled",
            || shuffled(&ad_events(), 1),
            &[&["user_id"]],
            never & ["cost_micros"],
            by & [&["event_id"]],
            "order does not change what a key is"
        ),
        case!(
            "ad events, by campaign",
            || sorted(&ad_events(), "campaign_id"),
            &[&["user_id"]],
            never & ["cost_micros"],
            by & [&["event_id"]],
            "an export sorted by another column"
        ),
        case!(
            "ad events with copies",
            copies,
            &[&["user_id"]],
            never & ["cost_micros"],
            by & [&["event_id"]],
            "retries repeat rows, not keys"
        ),
        case!(by name
            "first ad events",
            first_events,
            &[&["user_id"]],
            never & ["event_type"],
            by & [&["event_id"]],
            "users of events come back"
        ),
        case!(
            "ad clicks",
            clicks,
            &[&["ip"], &["ip", "app"]],
            never & [],
            by & [],
            "the address; attributed_time is nearly always NULL"
        ),
        case!(by name
            "impressions with features",
            featured_impressions,
            &[&["uid"], &["campaign"], &["campaign", "uid"]],
            never & ["cost", "cat1", "cat2", "cat3", "cat4", "cat5"],
            by & [&["uid", "timestamp"], &["campaign", "timestamp"]],
            "what was given a number for a name is a property"
        ),
        case!(by name
            "daily mailings",
            daily_mailings,
            &[&[], &["provider", "audience", "send_day"]],
            never & ["sent", "delivered", "bounced", "opened", "clicked", "unsubscribed"],
            by & [&["send_day", "provider", "audience"]],
            "what was sent and opened is counted, and identifies nothing"
        ),
    ]
}
