//! Declarations of Spanner in the headers of Avro files. Folders that lack files are tested with
//! the program.

use serde_json::{Value, json};

use super::*;
use crate::source::declared::DeclaredColumn;
use crate::source::systems::choose;
use evenkeel_model::remark::Remark;
use evenkeel_model::table::ColumnType;

/// Returns a schema of Spanner with these properties, in which fields are pairs of a name and their
/// properties; their type is that of text, which may be null.
fn schema(properties: Value, fields: &[(&str, Value)]) -> String {
    let field = |(name, properties): &(&str, Value)| {
        let mut field = json!({"name": name, "type": ["null", "string"]});
        merge(&mut field, properties);
        field
    };
    let fields: Vec<Value> = fields.iter().map(field).collect();
    let mut schema = json!({"type": "record", "googleStorage": "CloudSpanner", "fields": fields});
    merge(&mut schema, &properties);
    schema.to_string()
}

fn merge(into: &mut Value, properties: &Value) {
    for (name, value) in properties.as_object().unwrap() {
        into[name] = value.clone();
    }
}

fn table(name: &str, properties: Value, fields: &[(&str, Value)]) -> AvroTable<'static> {
    let schema = AvroSchema::parse(&schema(properties, fields)).unwrap();
    AvroTable { name: name.to_owned(), schema, files: Vec::new(), first: "T.avro".to_owned() }
}

fn typed(sql_type: &str) -> Value {
    json!({"sqlType": sql_type})
}

/// A table within another.
fn child(name: &str, parent: &str) -> AvroTable<'static> {
    let index = format!("CREATE INDEX Of{name} ON {name}(Id);");
    let properties = json!({"spannerParent": parent, "spannerIndex_0": index});
    table(name, properties, &[("Id", typed("INT64"))])
}

#[test]
fn a_statement_of_each_dialect_has_the_columns_the_key_and_the_parent() {
    let google = table(
        "s.Clicks",
        json!({
            "spannerPrimaryKey": "`User` ASC,`Id` DESC", "spannerPrimaryKey_0": "`User` ASC",
            "spannerPrimaryKey_1": "`Id` DESC", "spannerParent": "s.Users",
            "spannerOnDeleteAction": "cascade",
        }),
        &[
            ("User", json!({"sqlType": "STRING(36)", "notNull": "true"})),
            ("Id", json!({"sqlType": "INT64", "type": "long"})),
            ("Note", json!({})),
            ("Size", json!({"sqlType": "INT64", "generationExpression": "LENGTH(Note)"})),
        ],
    );
    let expected = "CREATE TABLE `s`.`Clicks` (
  `User` STRING(36) NOT NULL,
  `Id` INT64 NOT NULL,
  `Note` STRING(MAX),
  `Size` INT64 AS (LENGTH(Note)) STORED
) PRIMARY KEY (`User` ASC, `Id` DESC), INTERLEAVE IN PARENT `s`.`Users` ON DELETE CASCADE";
    assert_eq!(statement(&google, false), expected);

    let twice = json!({"sqlType": "bigint", "generationExpression": "id * 2", "stored": "false"});
    let postgres = table(
        "clicks",
        json!({
            "spannerPrimaryKey_0": "\"id\" ASC", "spannerPrimaryKey_1": "\"at\" DESC",
            "spannerParent": "users", "spannerInterleaveType": "IN",
        }),
        &[
            ("id", json!({"sqlType": "bigint", "type": "long", "notNull": "false"})),
            ("at", json!({"type": "string"})),
            ("twice", twice),
        ],
    );
    let expected = "CREATE TABLE \"clicks\" (
  \"id\" bigint,
  \"at\" text NOT NULL,
  \"twice\" bigint GENERATED ALWAYS AS (id * 2),
  PRIMARY KEY (\"id\", \"at\" DESC)
) INTERLEAVE IN \"users\"";
    assert_eq!(statement(&postgres, true), expected);
}

#[test]
fn statements_are_those_of_the_family_with_parents_first_and_indexes_last() {
    let all = [
        child("C", "B"),
        child("B", "A"),
        child("Alone", "Nowhere"),
        table("A", json!({}), &[("Id", typed("INT64"))]),
        child("D", "A"),
    ];
    for (of, expected) in [
        ("A", &["A", "B", "D", "C"][..]),
        ("B", &["A", "B", "C"]),
        ("C", &["A", "B", "C"]),
        ("D", &["A", "D"]),
        ("Alone", &["Alone"]),
    ] {
        let table = all.iter().find(|table| table.name == of).unwrap();
        let text = statements_with_ancestors(table, &all, false);
        let words = |sign: &str| -> Vec<String> {
            let parts = text.split(sign).skip(1);
            parts.map(|part| part.split(['`', ' ']).next().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(words("CREATE TABLE `"), expected, "{of}: {text}");
        let with_index: Vec<&str> = expected.iter().copied().filter(|name| *name != "A").collect();
        assert_eq!(words("CREATE INDEX Of"), with_index, "{of}: {text}");
        let last_table = text.rfind("CREATE TABLE").unwrap();
        assert!(text.find("CREATE INDEX").is_none_or(|index| index > last_table), "{text}");
        assert!(text.ends_with(";\n") && !text.contains(";;"), "{text}");
    }
}

#[test]
fn tables_that_are_parents_in_a_circle_are_read_to_an_end() {
    let all = [child("A", "C"), child("B", "A"), child("C", "B"), child("Self", "Self")];
    for (of, tables) in [("A", 3), ("B", 3), ("C", 3), ("Self", 1)] {
        let table = all.iter().find(|table| table.name == of).unwrap();
        let text = statements_with_ancestors(table, &all, false);
        assert_eq!(text.matches("CREATE TABLE").count(), tables, "{of}: {text}");
    }
}

#[test]
fn a_declared_table_has_the_columns_that_have_values() {
    let shard = json!({"sqlType": "INT64", "type": "null", "generationExpression": "MOD(Id, 4)"});
    let upper = json!({
        "sqlType": "STRING(MAX)", "type": "null", "generationExpression": "UPPER(Name)",
    });
    let fields = [
        ("Id", json!({"sqlType": "INT64", "type": "long"})),
        ("Name", typed("STRING(MAX)")),
        ("Tags", typed("ARRAY<STRING(20)>")),
        ("Shard", shard),
        ("Upper", upper),
    ];
    let declared = |key: &str| {
        let table = table("Users", json!({"spannerPrimaryKey": key}), &fields);
        declare(&table, "the statements".to_owned(), false).unwrap()
    };
    let found = declared("`Shard` ASC, `Id` ASC");
    let column = |c: &DeclaredColumn| (c.name.clone(), c.column_type, c.nullable);
    let columns: Vec<_> = found.columns.iter().map(column).collect();
    let expected = [
        ("Id".to_owned(), Some(ColumnType::Int64), false),
        ("Name".to_owned(), Some(ColumnType::Utf8), true),
        ("Shard".to_owned(), Some(ColumnType::Int64), true),
    ];
    assert_eq!(columns, expected);
    assert_eq!(found.primary_key, ["Shard", "Id"]);
    assert_eq!((found.layout, found.form), (TableLayout::Row, DataForm::Named));
    assert_eq!(found.spanner.as_deref(), Some("the statements"));
    assert_eq!(found.notes.len(), 2, "{:?}", found.notes);
    let codes = found.notes.iter().map(Remark::code);
    assert_eq!(codes.take(2).collect::<Vec<_>>(), ["generated_column_computed", "generated_column_left_out"]);
    assert!(found.notes[0].text().contains("'Shard'") && found.notes[0].text().contains("as MOD(Id, 4)"));
    assert!(found.notes[1].text().contains("'Upper'"));
    assert!(found.notes[1].text().contains("it has no values here"));
    // A key with a column that has no values says nothing of the rows.
    let without = declared("`Upper` ASC, `Id` ASC");
    assert!(without.primary_key.is_empty(), "{without:?}");
    let reason = "the declared primary key (Upper, Id) cannot be judged without 'Upper'";
    assert!(without.notes.iter().any(|note| note.text() == reason), "{:?}", without.notes);
}

#[test]
fn views_sequences_models_and_change_streams_are_no_tables() {
    let is_table_with = |properties: Value, fields: &[(&str, Value)]| {
        is_table(&AvroSchema::parse(&schema(properties, fields)).unwrap())
    };
    let fields = [("Id", typed("INT64"))];
    assert!(is_table_with(json!({"spannerPrimaryKey_0": "`Id` ASC"}), &fields));
    assert!(!is_table_with(json!({}), &[]));
    for property in [
        json!({"spannerEntity": "Placement"}),
        json!({"spannerViewQuery": "SELECT 1"}),
        json!({"sequenceKind": "bit_reversed_positive"}),
        json!({"sequenceOption_0": "sequence_kind"}),
        json!({"spannerChangeStreamForClause": "FOR ALL"}),
    ] {
        assert!(!is_table_with(property.clone(), &fields), "{property}");
    }
}

/// Writes an Avro file without rows.
fn avro(schema: &str) -> Vec<u8> {
    let mut file = b"Obj\x01\x02".to_vec();
    for text in ["avro.schema", schema] {
        let mut length = 2 * text.len();
        while length > 0x7f {
            file.push((length % 128) as u8 + 128);
            length /= 128;
        }
        file.push(length as u8);
        file.extend_from_slice(text.as_bytes());
    }
    file.push(0);
    file.extend_from_slice(&[9; 16]);
    file
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> InputPath {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    InputPath::File(path)
}

/// Returns the schema of a table with one more column.
fn named(name: &str, column: &str) -> String {
    let properties = json!({"name": name, "spannerPrimaryKey": "`Id` ASC"});
    schema(properties, &[("Id", typed("INT64")), (column, typed("STRING(MAX)"))])
}

#[test]
fn files_are_of_one_table_if_their_names_and_columns_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, schema: &str| write(dir.path(), name, avro(schema));
    let users = file("Users.avro-00000-of-00002", &named("Users", "Name"));
    let more = file("Users.avro-00001-of-00002", &named("Users", "Name"));
    let longer = file("Longer.avro", &named("Users", "Title"));
    let clicks = file("Clicks.avro", &named("Clicks", "Name"));
    let plain = r#"{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}"#;
    let other = file("other.avro", plain);
    let text = write(dir.path(), "Users.csv", "Id,Name\n");
    let of = |files: &[&InputPath], table: Option<&str>| {
        let files: Vec<InputPath> = files.iter().map(|file| (*file).clone()).collect();
        table_of_files(&files, table).map(|table| table.map(|table| table.name))
    };
    assert_eq!(of(&[&users, &more], None).unwrap().as_deref(), Some("Users"));
    assert_eq!(of(&[&text, &users], Some("Users")).unwrap().as_deref(), Some("Users"));
    // Files that are not of Spanner declare nothing.
    for files in [&[&other, &users][..], &[&text], &[]] {
        assert_eq!(of(files, None).unwrap(), None);
    }
    for files in [[&users, &clicks], [&users, &longer], [&users, &other]] {
        let error = of(&files, None).unwrap_err();
        let is_named = matches!(&error, SourceError::OtherTable { first, other }
            if *first == users.name() && *other == files[1].name());
        assert!(is_named, "{error}");
    }
    let error = of(&[&users], Some("Clicks")).unwrap_err();
    assert!(matches!(error, SourceError::NoSuchTable { found, .. } if found == ["Users"]));
}

#[test]
fn an_export_gives_its_tables_with_their_files_in_the_folder_of_its_list() {
    let dir = tempfile::tempdir().unwrap();
    let view = schema(json!({"spannerViewQuery": "SELECT 1"}), &[("Id", typed("INT64"))]);
    let list = json!({"tables": [
        {"name": "Users", "manifestFile": "Users-manifest.json"},
        {"name": "View", "dataFiles": ["View.avro"]},
        {"name": "Clicks", "dataFiles": ["Clicks.avro-*"]},
        {"name": "Empty", "dataFiles": ["Empty.avro-*"]},
    ]});
    let first = json!({"name": "Users.avro-0", "md5": "x=="});
    let manifest = json!({"files": [first, {"name": "Users.avro-1"}]});
    let users = avro(&named("Users", "Name"));
    let clicks = avro(&named("Clicks", "Name"));
    let mut files = Vec::new();
    for (path, bytes) in [
        ("db/Clicks.avro-0", clicks.clone()),
        ("db/Clicks.avro-1", clicks.clone()),
        ("db/Users-manifest.json", manifest.to_string().into_bytes()),
        ("db/Users.avro-0", users.clone()),
        ("db/Users.avro-1", users.clone()),
        ("db/Users.avro-2", users),
        ("db/View.avro", avro(&view)),
        ("db/old/Clicks.avro-2", clicks),
        ("db/spanner-export.json", list.to_string().into_bytes()),
    ] {
        files.push(ListedFile { path: path.to_owned(), input: write(dir.path(), path, bytes) });
    }
    let listing = Listing { name: "in".to_owned(), files, is_remote: false };
    let found = tables(&listing).unwrap();
    let described: Vec<(&str, Vec<String>, usize)> = found
        .iter()
        .map(|table| {
            let files = table.files.iter().map(InputPath::file_name).collect();
            (table.declared.name.as_str(), files, table.checksums.len())
        })
        .collect();
    let strings = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let expected = [
        ("Clicks", strings(["Clicks.avro-0", "Clicks.avro-1"]), 0),
        ("Users", strings(["Users.avro-0", "Users.avro-1"]), 1),
    ];
    assert_eq!(described, expected);
    let chosen = choose("in", found, Some("Clicks")).unwrap().unwrap();
    assert!(chosen.declared.spanner.is_some_and(|text| text.contains("CREATE TABLE `Clicks`")));
    let plain = Listing { name: "in".to_owned(), files: Vec::new(), is_remote: false };
    assert!(tables(&plain).unwrap().is_empty());
}
