//! Apache Kafka: a topic, and the key of its records.

use crate::targets::{Dialect, TableDesign};

pub(super) struct Kafka;

impl Dialect for Kafka {
    fn statements(&self, design: &TableDesign<'_>, notes: &mut Vec<String>) -> String {
        // Topics have letters, digits, dots, underscores and hyphens.
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let topic: String = design.name.chars().map(plain).collect();
        notes.push(format!(
            "producers set the record key to {}{}",
            design.partition_key.join(" and "),
            if design.partition_key.len() > 1 { ", joined in one fixed way" } else { "" }
        ));
        notes.push("choose the number of partitions permanently: adding partitions later moves keys and breaks their order".to_owned());
        format!(
            "kafka-topics.sh --bootstrap-server localhost:9092 --create --topic {topic} --partitions {}\n",
            design.partitions
        )
    }

    fn comment(&self) -> &'static str {
        "#"
    }
}
