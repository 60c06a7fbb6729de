//! Working directories and limits of executors without a scheduler.

use datafusion::execution::memory_pool::MemoryLimit;

use super::*;

/// Builds an executor with 64 MiB.
fn built(cores: usize) -> (Executor, tempfile::TempDir) {
    let options = ExecutorOptions {
        scheduler: "http://127.0.0.1:1".to_owned(),
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        host: "worker".to_owned(),
        cores,
        memory: ByteSize::mib(64),
        work_dir: None,
        security: ServerSecurity::default(),
        client: ClientSecurity::default(),
    };
    let work = work_dir(None).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], 7077));
    (build(&options, address, work.path(), &LastTask::default()).unwrap(), work)
}

#[test]
fn a_working_directory_is_created_with_its_parents_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("a/b");
    let work = work_dir(Some(&below)).unwrap();
    let path = work.path().to_owned();
    assert_eq!(path.parent(), Some(below.as_path()));
    for part in ["tasks", "spilled"] {
        assert!(path.join(part).is_dir(), "{part}");
    }
    let other = work_dir(Some(&below)).unwrap();
    assert_ne!(other.path(), path, "executors share none");
    drop(work);
    assert!(!path.exists() && other.path().exists());
}

#[test]
fn a_working_directory_that_cannot_be_created_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let failed = work_dir(Some(&file)).map(|_| ());
    let Err(ClusterError::File { path, .. }) = &failed else { panic!("{failed:?}") };
    assert_eq!(path, &file.display().to_string());
}

#[test]
fn an_executor_is_reached_under_its_name_and_the_port_that_it_got() {
    let (executor, work) = built(4);
    let metadata = &executor.metadata;
    assert_eq!((metadata.host.as_deref(), metadata.port, metadata.grpc_port), (Some("worker"), 7077, 7077));
    assert_eq!(executor.vcores, 4);
    assert_eq!(Path::new(&executor.work_dir), work.path().join("tasks"));
    let (other, _work) = built(4);
    assert_ne!(other.metadata.id, metadata.id);
}

#[test]
fn tasks_share_the_memory_by_their_cores() {
    let limit = |cores: usize, of_task: u32| {
        let (executor, _work) = built(cores);
        let runtime = executor.produce_runtime_for_session("s", &executor.produce_config(), of_task).unwrap();
        match runtime.memory_pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes >> 20,
            _ => panic!("there is no limit"),
        }
    };
    assert_eq!([limit(4, 1), limit(4, 2), limit(4, 4)], [16, 32, 64]);
    assert_eq!(limit(4, 0), 16, "a task has a core");
    assert_eq!(limit(0, 1), 64, "an executor has a core");
}
