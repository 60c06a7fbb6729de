columns {
  name: "event_timestamp"
  type {
    type_id: TIMESTAMP
  }
}
columns {
  name: "user_id"
  type {
    type_id: UINT64
  }
}
columns {
  name: "campaign_id"
  type {
    type_id: UINT64
  }
}
columns {
  name: "kind"
  type {
    optional_type {
      item {
        type_id: UTF8
      }
    }
  }
}
columns {
  name: "note"
  type {
    optional_type {
      item {
        type_id: STRING
      }
    }
  }
}
primary_key: "event_timestamp"
primary_key: "user_id"
primary_key: "campaign_id"
partitioning_settings {
  partition_by: "user_id"
  min_partitions_count: 16
}
store_type: STORE_TYPE_COLUMN
