//! Apache Cassandra and ScyllaDB: tokens of the Murmur3 partitioner on a ring.
//!
//! Source: apache/cassandra `Murmur3Partitioner`, `MurmurHash`.

use std::sync::{Arc, Mutex, PoisonError};

use crate::placement::systems::hashes::murmur::murmur3_cassandra;
use crate::placement::systems::key::push_big_endian;
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;
use evenkeel_model::units::PartitionId;

/// Evenly spaced tokens, one for each of N nodes.
#[derive(Debug)]
pub(super) struct Cassandra;

/// A fixed number of random tokens for each of N nodes.
#[derive(Debug)]
pub(super) struct Vnodes {
    tokens: u32,
    about: &'static About,
}

/// `num_tokens` since Cassandra 4.0.
pub(super) static VNODES_16: Vnodes = Vnodes { tokens: 16, about: &ABOUT_16 };
/// `num_tokens` before that, and in ScyllaDB.
pub(super) static VNODES_256: Vnodes = Vnodes { tokens: 256, about: &ABOUT_256 };

static ABOUT_256: About = About {
    name: "cassandra-vnodes-256",
    title: "Apache Cassandra and ScyllaDB, Murmur3Partitioner, 256 random tokens a node: one draw of many",
    source: "as for cassandra; tokens are drawn here, with a fixed seed, as num_tokens: 256 draws them",
    formula: "the node with the next of 256 x N random tokens",
    clause: |key, count| format!("PRIMARY KEY (({key}), ...), on {count} nodes with num_tokens: 256"),
    ..ABOUT_16
};

static ABOUT_16: About = About {
    name: "cassandra-vnodes",
    title: "Apache Cassandra and ScyllaDB, Murmur3Partitioner, 16 random tokens a node: one draw of many",
    status: Status::Computed,
    source: "as for cassandra; tokens are drawn here, with a fixed seed, as num_tokens: 16 without allocate_tokens draws them",
    bytes: CASSANDRA.bytes,
    hash: CASSANDRA.hash,
    formula: "the node with the next of 16 x N random tokens",
    hash_type: HashType::Int64,
    unsigned: false,
    narrow_times: false,
    nulls: "takes no NULL in a partition key",
    most_columns: usize::MAX,
    quote: "\"",
    clause: |key, count| format!("PRIMARY KEY (({key}), ...), on {count} nodes with num_tokens: 16"),
};

static CASSANDRA: About = About {
    name: "cassandra",
    title: "Apache Cassandra and ScyllaDB, Murmur3Partitioner, one evenly spaced token a node",
    status: Status::Verified,
    source: "apache/cassandra: Murmur3Partitioner, MurmurHash; tokens as the driver of DataStax makes them",
    bytes: "the serialized value, big-endian, points in time in milliseconds; of several columns each between its length in 2 bytes and a zero byte",
    hash: "MurmurHash3_x64_128, the first 64 bits, with signed bytes behind the last block",
    formula: "the node with the next token: token i is i x (2^64 / N) - 2^63",
    hash_type: HashType::Int64,
    unsigned: false,
    narrow_times: false,
    nulls: "takes no NULL in a partition key",
    most_columns: usize::MAX,
    quote: "\"",
    clause: |key, count| format!("PRIMARY KEY (({key}), ...), on {count} nodes"),
};

impl System for Cassandra {
    fn about(&self) -> &'static About {
        &CASSANDRA
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Interval | ColumnType::Interval64 => Some("a duration cannot be a key"),
            _ => None,
        }
    }

    fn encode(&self, value: Value<'_>, place: ValuePlace, bytes: &mut Vec<u8>) {
        let begin = bytes.len();
        if place.columns > 1 {
            bytes.extend_from_slice(&[0, 0]);
        }
        match value {
            Value::Null => {}
            Value::Bool(value) => bytes.push(u8::from(value)),
            Value::Int(value, width) => push_big_endian(value.cast_unsigned(), width, bytes),
            Value::Uint(value, width) => push_big_endian(value, width, bytes),
            Value::Float(value) => bytes.extend_from_slice(&value.to_be_bytes()),
            Value::Double(value) => bytes.extend_from_slice(&value.to_be_bytes()),
            Value::Text(text) | Value::Bytes(text) => bytes.extend_from_slice(text),
            Value::Uuid(uuid) => bytes.extend_from_slice(&uuid),
            // Days since 5877641 BC: unsigned, with 1970 in the middle.
            Value::Date(days) => bytes.extend_from_slice(&(days.cast_unsigned() ^ 1 << 31).to_be_bytes()),
            Value::Timestamp(micros) => bytes.extend_from_slice(&micros.div_euclid(1000).to_be_bytes()),
        }
        if place.columns > 1 {
            let length = (bytes.len() - begin - 2) as u16;
            if let Some(prefix) = bytes.get_mut(begin..begin + 2) {
                prefix.copy_from_slice(&length.to_be_bytes());
            }
            bytes.push(0);
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| {
            // The smallest number is not a valid token.
            let token = match murmur3_cassandra(bytes) {
                i64::MIN => i64::MAX,
                token => token,
            };
            token.cast_unsigned()
        });
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        // Count tokens from the smallest. A token belongs to the next node, and the last ones to
        // the first node.
        let from_least = hash ^ 1 << 63;
        if partitions == 1 {
            return 0;
        }
        let between = u64::MAX / u64::from(partitions) + u64::from(partitions.is_power_of_two());
        let next = from_least.div_ceil(between);
        if next >= u64::from(partitions) { 0 } else { next as u32 }
    }
}

/// The most recently used ring, with its tokens per node and its number of nodes.
static RING: Mutex<Option<((u32, u32), Ring)>> = Mutex::new(None);

/// Tokens in order, each with its node.
type Ring = Arc<Vec<(i64, u32)>>;

impl Vnodes {
    fn known_ring(&self, nodes: u32) -> Ring {
        let wanted = (self.tokens, nodes);
        // The ring is valid even if a thread panicked while it held the lock.
        let mut known = RING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ring)) = known.as_ref().filter(|(known, _)| *known == wanted) {
            return Arc::clone(ring);
        }
        let ring = Arc::new(self.ring(nodes));
        *known = Some((wanted, Arc::clone(&ring)));
        ring
    }

    /// Returns the tokens of all nodes in order, each with its node. The tokens of a node do not
    /// depend on the number of nodes.
    fn ring(&self, nodes: u32) -> Vec<(i64, u32)> {
        let tokens = self.tokens;
        let token = |node: u32, number: u32| {
            // SplitMix64 (Steele, Lea and Flood, 2014).
            let word = (u64::from(node) * u64::from(tokens) + u64::from(number) + 1)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (word ^ (word >> 31)).cast_signed()
        };
        let of_node = |node| (0..tokens).map(move |number| (token(node, number), node));
        let mut ring: Vec<(i64, u32)> = (0..nodes).flat_map(of_node).collect();
        ring.sort_unstable();
        ring
    }

    fn node(ring: &[(i64, u32)], hash: u64) -> u32 {
        let next = ring.partition_point(|(token, _)| *token < hash.cast_signed());
        ring.get(next).or(ring.first()).map_or(0, |(_, node)| *node)
    }
}

impl System for Vnodes {
    fn about(&self) -> &'static About {
        self.about
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        Cassandra.refuses(column_type)
    }

    fn encode(&self, value: Value<'_>, place: ValuePlace, bytes: &mut Vec<u8>) {
        Cassandra.encode(value, place, bytes);
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        Cassandra.hash(key, hashes);
    }

    fn has_even_ranges(&self) -> bool {
        false
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        Self::node(&self.known_ring(partitions), hash)
    }

    fn assign(&self, hashes: &[u64], partitions: u32, ids: &mut Vec<PartitionId>) {
        let ring = self.known_ring(partitions);
        ids.extend(hashes.iter().map(|hash| PartitionId(Self::node(&ring, *hash))));
    }
}
