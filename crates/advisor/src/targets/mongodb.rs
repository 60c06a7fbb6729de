//! MongoDB: a sharded collection.

use crate::targets::sql::only_column;
use crate::targets::{Dialect, TableDesign};

pub(super) struct MongoDb;

impl Dialect for MongoDb {
    fn statements(&self, design: &TableDesign<'_>, notes: &mut Vec<String>) -> String {
        let column = only_column(design, "MongoDB", notes);
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let collection = text(design.name);
        let mut script = format!(
            "sh.shardCollection(db.getName() + \".\" + {collection}, {{ {}: \"hashed\" }}, false, {{ numInitialChunks: {} }});\n",
            text(column),
            design.partitions
        );
        if !design.primary_key.is_empty() {
            let fields: Vec<String> =
                design.primary_key.iter().map(|name| format!("{}: 1", text(name))).collect();
            // The unique index of a sharded collection must begin with the shard key, which a
            // hashed one cannot.
            script.push_str(&format!(
                "db.getCollection({collection}).createIndex({{ {} }});\n",
                fields.join(", ")
            ));
        }
        notes.push("the collection must be empty; if the server refuses numInitialChunks, as newer ones do, omit it: the server then creates chunks for each shard".to_owned());
        if design.is_unique {
            notes.push("a collection with a hashed shard key can have no unique index but _id: build _id from the primary key to enforce it".to_owned());
        }
        script
    }

    fn comment(&self) -> &'static str {
        "//"
    }
}
