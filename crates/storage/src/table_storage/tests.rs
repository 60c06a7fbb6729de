//! Storage in memory under a prefix and in a directory, which behave the same.

use std::sync::Arc;

use bytes::Bytes;
use object_store::memory::InMemory;

use super::*;

/// The same empty table in memory and in a directory, which is removed when it is dropped.
fn tables() -> (tempfile::TempDir, [TableStorage; 2]) {
    let directory = tempfile::tempdir().unwrap();
    let local = TableStorage::create_local(&directory.path().join("t")).unwrap();
    (directory, [TableStorage::new(Arc::new(InMemory::new()), "tables/t".into()), local])
}

#[tokio::test]
async fn a_new_file_never_replaces_another_and_a_replacement_does() {
    let (_directory, tables) = tables();
    for table in tables {
        assert!(table.put_new("a/file", "first".into()).await.unwrap());
        assert!(!table.put_new("a/file", "second".into()).await.unwrap());
        assert_eq!(table.read("a/file").await.unwrap(), "first");
        table.replace("a/file", "third".into()).await.unwrap();
        assert_eq!(table.read("a/file").await.unwrap(), "third");
    }
}

#[tokio::test]
async fn a_unique_name_is_refused_if_another_file_has_it() {
    let (_directory, tables) = tables();
    for table in tables {
        assert!(table.put_unique("file", "first".into()).await.unwrap());
        for other in ["another", "other"] {
            assert!(!table.put_unique("file", other.into()).await.unwrap());
        }
        assert_eq!(table.read("file").await.unwrap(), "first");
    }
}

#[tokio::test]
async fn a_file_larger_than_two_parts_is_stored_whole() {
    let (_directory, tables) = tables();
    // Neither a multiple of the size of a part nor the same in any two parts.
    let bytes: Bytes =
        (0..(17u32 << 20) + 5).map(|at| (at / 65_536 + at % 251) as u8).collect::<Vec<_>>().into();
    for table in tables {
        assert!(table.put_unique("file", bytes.clone()).await.unwrap());
        assert_eq!(table.size("file").await.unwrap(), Some(bytes.len() as u64));
        assert!(table.read("file").await.unwrap() == bytes);
    }
}

#[tokio::test]
async fn files_are_read_whole_by_their_ends_and_piece_by_piece() {
    let (_directory, tables) = tables();
    for table in tables {
        table.put_new("file", "0123456789".into()).await.unwrap();
        for (bytes, expected) in [(3, "789"), (10, "0123456789"), (99, "0123456789")] {
            assert_eq!(table.read_tail("file", 10, bytes).await.unwrap(), expected);
        }
        let mut pieces = Vec::new();
        table.read_chunks("file", |piece| pieces.extend_from_slice(piece)).await.unwrap();
        assert_eq!(pieces, b"0123456789");
    }
}

#[tokio::test]
async fn an_absent_file_has_no_content_and_no_size_and_can_be_deleted() {
    let (_directory, tables) = tables();
    for table in tables {
        for error in [
            table.read("absent").await.unwrap_err(),
            table.read_tail("absent", 9, 3).await.unwrap_err(),
            table.read_chunks("absent", |_| ()).await.unwrap_err(),
        ] {
            assert!(error.is_not_found() && !error.is_refusal(), "{error}");
            assert!(error.to_string().contains("cannot read absent"), "{error}");
        }
        assert_eq!(table.size("absent").await.unwrap(), None);
        table.delete("absent").await.unwrap();
        table.put_new("file", "x".into()).await.unwrap();
        assert!(table.exists("file").await.unwrap());
        table.delete("file").await.unwrap();
        assert!(!table.exists("file").await.unwrap());
        assert!(matches!(table.read("../file").await.unwrap_err(), StorageError::Path { .. }));
    }
}

#[tokio::test]
async fn a_list_has_the_files_of_one_folder_or_of_all_and_marks_staging_files() {
    let (_directory, tables) = tables();
    for table in tables {
        assert!(table.list("_log").await.unwrap().is_empty());
        assert!(table.is_empty().await.unwrap());
        table.put_new("p/.staging-1", "left over".into()).await.unwrap();
        assert!(table.is_empty().await.unwrap(), "staging files do not count");
        for path in ["_log/0.json", "_log/1.json", "_log/below/2.json", "p/x.parquet"] {
            table.put_new(path, path.into()).await.unwrap();
        }
        assert!(!table.is_empty().await.unwrap());
        let mut names = table.list("_log").await.unwrap();
        // A folder is an entry of a directory, but not of an object store.
        names.retain(|name| name != "below");
        names.sort();
        assert_eq!(names, ["0.json", "1.json"]);
        let files = table.list_all().await.unwrap().into_iter();
        let mut files: Vec<_> = files.map(|file| (file.path, file.bytes, file.staging)).collect();
        files.sort();
        let expected = [
            ("_log/0.json", 11, false),
            ("_log/1.json", 11, false),
            ("_log/below/2.json", 17, false),
            ("p/.staging-1", 9, true),
            ("p/x.parquet", 11, false),
        ];
        assert_eq!(files, expected.map(|(path, bytes, staging)| (path.to_owned(), bytes, staging)));
    }
}

#[tokio::test]
async fn tables_of_one_store_do_not_see_each_other() {
    let store = Arc::new(InMemory::new());
    let table = TableStorage::new(store.clone(), "t".into());
    let other = TableStorage::new(store, "t2".into());
    table.put_new("file", "x".into()).await.unwrap();
    assert!(other.is_empty().await.unwrap() && other.list_all().await.unwrap().is_empty());
    assert_ne!(table.id(), other.id());
}

#[test]
fn only_an_existing_directory_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let absent = TableStorage::open(&directory.path().join("absent")).unwrap_err();
    assert!(matches!(absent, StorageError::NoDirectory { .. }), "{absent}");
    assert!(matches!(TableStorage::open(&file).unwrap_err(), StorageError::File { .. }));
    assert!(matches!(TableStorage::open("ftp://host/t".as_ref()).unwrap_err(), StorageError::Url { .. }));
    let table = TableStorage::open(directory.path()).unwrap();
    assert!(table.is_local());
    assert_eq!(table.place(), directory.path().canonicalize().unwrap().display().to_string());
}

#[tokio::test]
async fn a_table_is_created_with_the_directories_above_it_but_not_within_another() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("a/b/t");
    let table = TableStorage::create(&place).unwrap();
    assert!(place.is_dir());
    TableStorage::create(&place.join("within")).unwrap();
    table.put_new("_log/00000000000000000000.json", "{}".into()).await.unwrap();
    let error = TableStorage::create(&place.join("p/q")).unwrap_err();
    let StorageError::InsideTable { table, .. } = error else { panic!("{error}") };
    assert_eq!(table, place);
    TableStorage::create(&place).unwrap();
}
