//! Generated columns of Spanner, whose values an export omits: columns derived from others by
//! fingerprints and integer arithmetic, such as shards of a key, are recomputed.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    UnaryOperator, Value as SqlValue,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

use crate::source::avro::schema::{AvroField, AvroSchema};
use evenkeel_placement::transform::{bit_reverse, farm_fingerprint};

/// A generated column that can be computed.
pub(super) struct Generated {
    pub(super) name: String,
    /// Columns from which it is computed.
    pub(super) columns: Vec<String>,
    node: Node,
    kind: Kind,
}

/// Kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
}

/// An expression.
#[derive(Debug, Clone)]
enum Node {
    Number(i64),
    Literal(Vec<u8>),
    Column(String, ColumnKind),
    Fingerprint(Box<Node>),
    Mod(Box<Node>, Box<Node>),
    Add(Box<Node>, Box<Node>),
    Subtract(Box<Node>, Box<Node>),
    Abs(Box<Node>),
    BitReverse(Box<Node>, bool),
    /// The text of a number, or a text.
    Text(Box<Node>),
    Concat(Vec<Node>),
}

/// Kind of the values of a column, by its type in Spanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnKind {
    Number,
    Text,
    Bool,
    Uuid,
}

/// A value of an expression.
enum Value {
    Number(i64),
    Text(Vec<u8>),
}

/// Whether the values of a generated column can be computed from other columns.
pub(in crate::source) fn can_generate(schema: &AvroSchema, column: &str) -> bool {
    Generated::from_schema(schema).iter().any(|generated| generated.name == column)
}

impl Generated {
    /// Returns the generated columns of a table that can be computed.
    pub(super) fn from_schema(schema: &AvroSchema) -> Vec<Self> {
        schema.fields.iter().filter_map(|field| Self::from_field(field, schema)).collect()
    }

    fn from_field(field: &AvroField, schema: &AvroSchema) -> Option<Self> {
        let text = field.property("generationExpression")?;
        let mut parser = Parser::new(&GenericDialect {}).try_with_sql(text).ok()?;
        let (node, kind) = compile(&parser.parse_expr().ok()?, schema)?;
        let declared = field.property("sqlType")?.to_ascii_uppercase();
        let is_of_type = match kind {
            Kind::Number => matches!(declared.as_str(), "INT64" | "BIGINT"),
            Kind::Text => ["STRING", "VARCHAR", "CHARACTER VARYING", "TEXT", "BYTES", "BYTEA"]
                .iter()
                .any(|name| declared.starts_with(name)),
        };
        let mut columns = Vec::new();
        node.columns(&mut columns);
        // A constant needs no columns, and is no evidence.
        (is_of_type && !columns.is_empty()).then(|| Self { name: field.name.clone(), columns, node, kind })
    }

    pub(super) fn data_type(&self) -> DataType {
        match self.kind {
            Kind::Number => DataType::Int64,
            Kind::Text => DataType::Utf8,
        }
    }

    /// Computes the values for the rows of a batch.
    pub(super) fn values(&self, batch: &RecordBatch) -> Result<ArrayRef, String> {
        let rows = 0..batch.num_rows();
        let value = |row: usize| self.node.value(batch, row);
        Ok(match self.kind {
            Kind::Number => {
                let number = |row| match value(row) {
                    Some(Value::Number(number)) => Some(number),
                    _ => None,
                };
                Arc::new(rows.map(number).collect::<Int64Array>())
            }
            Kind::Text => {
                let text = |row| match value(row) {
                    Some(Value::Text(text)) => String::from_utf8(text)
                        .map(Some)
                        .map_err(|_| format!("a value of column '{}' is not UTF-8", self.name)),
                    _ => Ok(None),
                };
                Arc::new(rows.map(text).collect::<Result<StringArray, String>>()?)
            }
        })
    }
}

/// Returns the expression of a syntax tree; `None` if a part of it is not modelled.
fn compile(expression: &Expr, schema: &AvroSchema) -> Option<(Node, Kind)> {
    let number = |expression: &Expr| match compile(expression, schema)? {
        (node, Kind::Number) => Some(Box::new(node)),
        _ => None,
    };
    let text = |expression: &Expr| match compile(expression, schema)? {
        (node, Kind::Text) => Some(node),
        _ => None,
    };
    match expression {
        Expr::Nested(inner) => compile(inner, schema),
        Expr::Identifier(name) => column(name, schema),
        Expr::Value(value) => match &value.value {
            SqlValue::Number(digits, _) => Some((Node::Number(digits.parse().ok()?), Kind::Number)),
            SqlValue::SingleQuotedString(text) | SqlValue::DoubleQuotedString(text) => {
                Some((Node::Literal(text.clone().into_bytes()), Kind::Text))
            }
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            Some((Node::Subtract(Box::new(Node::Number(0)), number(expr)?), Kind::Number))
        }
        Expr::BinaryOp { left, op, right } => match op {
            BinaryOperator::Plus => Some((Node::Add(number(left)?, number(right)?), Kind::Number)),
            BinaryOperator::Minus => Some((Node::Subtract(number(left)?, number(right)?), Kind::Number)),
            BinaryOperator::Modulo => Some((Node::Mod(number(left)?, number(right)?), Kind::Number)),
            BinaryOperator::StringConcat => Some((Node::Concat(vec![text(left)?, text(right)?]), Kind::Text)),
            _ => None,
        },
        Expr::Cast { expr, data_type, .. } => {
            let to = cast_kind(data_type)?;
            match (compile(expr, schema)?, to) {
                ((node, Kind::Number), Kind::Number) => Some((node, Kind::Number)),
                ((node, _), Kind::Text) => Some((Node::Text(Box::new(node)), Kind::Text)),
                _ => None,
            }
        }
        Expr::Function(function) => {
            let name = function.name.0.last()?.as_ident()?.value.to_ascii_uppercase();
            let FunctionArguments::List(list) = &function.args else { return None };
            let argument = |argument: &FunctionArg| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression.clone()),
                _ => None,
            };
            let arguments: Vec<Expr> = list.args.iter().map(argument).collect::<Option<_>>()?;
            match (name.as_str(), arguments.as_slice()) {
                ("FARM_FINGERPRINT", [inner]) => {
                    Some((Node::Fingerprint(Box::new(text(inner)?)), Kind::Number))
                }
                ("MOD", [left, right]) => Some((Node::Mod(number(left)?, number(right)?), Kind::Number)),
                ("ABS", [inner]) => Some((Node::Abs(number(inner)?), Kind::Number)),
                ("BIT_REVERSE", [inner, Expr::Value(keeps_sign)]) => {
                    let SqlValue::Boolean(keeps) = keeps_sign.value else { return None };
                    Some((Node::BitReverse(number(inner)?, keeps), Kind::Number))
                }
                ("CONCAT", parts) => {
                    Some((Node::Concat(parts.iter().map(text).collect::<Option<_>>()?), Kind::Text))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn column(name: &Ident, schema: &AvroSchema) -> Option<(Node, Kind)> {
    if name.quote_style == Some('"') && !schema.is_of_postgres() {
        // In GoogleSQL, these quotes delimit text.
        return Some((Node::Literal(name.value.clone().into_bytes()), Kind::Text));
    }
    // Names of columns are matched without case in GoogleSQL.
    let field = schema.fields.iter().find(|field| field.name.eq_ignore_ascii_case(&name.value))?;
    if field.property("generationExpression").is_some() {
        return None;
    }
    let declared = field.property("sqlType")?.to_ascii_uppercase();
    let base = declared.split('(').next().unwrap_or_default().trim();
    let (kind, value_kind) = match base {
        "INT64" | "BIGINT" => (ColumnKind::Number, Kind::Number),
        "STRING" | "VARCHAR" | "CHARACTER VARYING" | "TEXT" | "BYTES" | "BYTEA" | "DATE" => {
            (ColumnKind::Text, Kind::Text)
        }
        "BOOL" | "BOOLEAN" => (ColumnKind::Bool, Kind::Text),
        "UUID" => (ColumnKind::Uuid, Kind::Text),
        // The text of a point in time depends on the time zone of the database.
        _ => return None,
    };
    Some((Node::Column(field.name.clone(), kind), value_kind))
}

fn cast_kind(data_type: &SqlType) -> Option<Kind> {
    let name = data_type.to_string().to_ascii_uppercase();
    // A length would cut the text.
    match name.as_str() {
        "STRING" | "VARCHAR" | "CHARACTER VARYING" | "TEXT" | "BYTES" | "BYTEA" => Some(Kind::Text),
        "INT64" | "BIGINT" => Some(Kind::Number),
        _ => None,
    }
}

impl Node {
    fn columns(&self, names: &mut Vec<String>) {
        match self {
            Self::Number(_) | Self::Literal(_) => {}
            Self::Column(name, _) => {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            Self::Fingerprint(inner) | Self::Abs(inner) | Self::BitReverse(inner, _) | Self::Text(inner) => {
                inner.columns(names);
            }
            Self::Mod(left, right) | Self::Add(left, right) | Self::Subtract(left, right) => {
                left.columns(names);
                right.columns(names);
            }
            Self::Concat(parts) => parts.iter().for_each(|part| part.columns(names)),
        }
    }

    /// Returns the value for a row; `None` is NULL, also if Spanner would report an overflow.
    fn value(&self, batch: &RecordBatch, row: usize) -> Option<Value> {
        let number = |node: &Self| match node.value(batch, row)? {
            Value::Number(number) => Some(number),
            Value::Text(_) => None,
        };
        let text = |node: &Self| match node.value(batch, row)? {
            Value::Text(text) => Some(text),
            Value::Number(number) => Some(number.to_string().into_bytes()),
        };
        Some(match self {
            Self::Number(number) => Value::Number(*number),
            Self::Literal(text) => Value::Text(text.clone()),
            Self::Column(name, kind) => column_value(batch.column_by_name(name)?, *kind, row)?,
            Self::Fingerprint(inner) => Value::Number(farm_fingerprint(&text(inner)?)),
            Self::Mod(left, right) => Value::Number(number(left)?.checked_rem(number(right)?)?),
            Self::Add(left, right) => Value::Number(number(left)?.checked_add(number(right)?)?),
            Self::Subtract(left, right) => Value::Number(number(left)?.checked_sub(number(right)?)?),
            Self::Abs(inner) => Value::Number(number(inner)?.checked_abs()?),
            Self::BitReverse(inner, keeps_sign) => Value::Number(bit_reverse(number(inner)?, *keeps_sign)),
            Self::Text(inner) => Value::Text(text(inner)?),
            Self::Concat(parts) => {
                let parts: Vec<Vec<u8>> = parts.iter().map(text).collect::<Option<_>>()?;
                Value::Text(parts.concat())
            }
        })
    }
}

fn column_value(array: &ArrayRef, kind: ColumnKind, row: usize) -> Option<Value> {
    if array.is_null(row) {
        return None;
    }
    match kind {
        ColumnKind::Number => Some(Value::Number(array.as_primitive_opt::<Int64Type>()?.value(row))),
        ColumnKind::Text => match array.as_string_opt::<i32>() {
            Some(texts) => Some(Value::Text(texts.value(row).as_bytes().to_vec())),
            None => Some(Value::Text(array.as_binary_opt::<i32>()?.value(row).to_vec())),
        },
        ColumnKind::Bool => Some(Value::Text(array.as_boolean_opt()?.value(row).to_string().into_bytes())),
        ColumnKind::Uuid => {
            let id = uuid::Uuid::from_slice(array.as_fixed_size_binary_opt()?.value(row)).ok()?;
            Some(Value::Text(id.to_string().into_bytes()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the values of a generated column for rows (7, "seven") and (NULL, "x").
    fn values(sql_type: &str, expression: &str) -> Option<Vec<Option<String>>> {
        let field =
            |name: &str, sql: &str| serde_json::json!({"name": name, "type": "string", "sqlType": sql});
        let mut generated = field("G", sql_type);
        generated["generationExpression"] = expression.into();
        let fields = serde_json::json!([
            field("Id", "INT64"),
            field("Name", "STRING(MAX)"),
            field("At", "TIMESTAMP"),
            generated
        ]);
        let schema = serde_json::json!({"type": "record", "name": "T", "fields": fields}).to_string();
        let columns = Generated::from_schema(&AvroSchema::parse(&schema).unwrap());
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["seven", "x"]));
        let batch = RecordBatch::try_from_iter([("Id", ids), ("Name", names)]).unwrap();
        let values =
            arrow::compute::cast(&columns.first()?.values(&batch).unwrap(), &DataType::Utf8).unwrap();
        Some(values.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect())
    }

    #[test]
    fn shards_follow_from_their_columns() {
        let some = |number: i64| Some(number.to_string());
        let seven = farm_fingerprint(b"7");
        let named = farm_fingerprint(b"seven");
        let x = farm_fingerprint(b"x");
        for (expression, expected) in [
            ("MOD(FARM_FINGERPRINT(CAST(Id AS STRING)), 16)", [some(seven % 16), None]),
            ("ABS(MOD(FARM_FINGERPRINT(`Name`), 16))", [some((named % 16).abs()), some((x % 16).abs())]),
            (
                "(MOD(MOD(FARM_FINGERPRINT(Name), 8) + 8, 8))",
                [some(named.rem_euclid(8)), some(x.rem_euclid(8))],
            ),
            (
                "FARM_FINGERPRINT(CONCAT(name, '/', CAST(Id AS STRING)))",
                [some(farm_fingerprint(b"seven/7")), None],
            ),
            (
                "FARM_FINGERPRINT(CONCAT(Name, \"Id\"))",
                [some(farm_fingerprint(b"sevenId")), some(farm_fingerprint(b"xId"))],
            ),
            ("mod(spanner.farm_fingerprint(Name::varchar), 4)", [some(named % 4), some(x % 4)]),
            ("BIT_REVERSE(Id, TRUE)", [some(bit_reverse(7, true)), None]),
            ("-Id % 4", [some(-3), None]),
        ] {
            assert_eq!(values("INT64", expression).unwrap(), expected, "{expression}");
        }
        let texts = values("STRING(20)", "CONCAT(Name, '-', CAST(Id AS STRING))").unwrap();
        assert_eq!(texts, [Some("seven-7".to_owned()), None]);
    }

    #[test]
    fn what_is_not_modelled_has_no_values() {
        for expression in [
            "LOWER(Name)",
            "FARM_FINGERPRINT(CAST(At AS STRING))",
            "FARM_FINGERPRINT(Id)",
            "FARM_FINGERPRINT(CAST(Name AS STRING(3)))",
            "MOD(Name, 4)",
            "G + 1",
            "Nope",
            "7",
            "",
            "MOD(",
        ] {
            assert!(values("INT64", expression).is_none(), "{expression}");
        }
        assert!(values("STRING(MAX)", "MOD(Id, 4)").is_none());
    }
}
