columns {
  name: "id"
  type {
    optional_type {
      item {
        type_id: UINT64
      }
    }
  }
}
columns {
  name: "name"
  type {
    optional_type {
      item {
        type_id: UTF8
      }
    }
  }
}
primary_key: "id"
partitioning_settings {
  min_partitions_count: 1
}
