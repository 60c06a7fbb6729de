//! Texts of failed jobs, as Ballista writes them.

use std::sync::Arc;

use arrow::error::ArrowError;
use ballista_core::error::BallistaError;

use super::*;

/// The text of a job whose task failed.
fn of_task(error: &BallistaError) -> String {
    format!("Job failed due to stage 2 failed: Task failed due to runtime execution error: {error:?}\n")
}

fn is_tried_again(text: &str) -> bool {
    TaskError::from_job(text).again
}

#[test]
fn what_is_told_survives_the_texts_of_others() {
    let error = TaskError {
        message: "a.csv, line 7, column 'x': \"y\" [is] no number".into(),
        again: false,
        too_large: true,
    };
    let text = of_task(&BallistaError::DataFusionError(Box::new(error.pack())));
    assert_eq!(TaskError::from_job(&text), error);
    let text =
        r#"stage 1 failed: DataFusionError(Shared(External(ArrowError(CastError("no \"number\" here")))))"#;
    let query = TaskError::from_job(text);
    assert_eq!((query.again, query.message.as_str()), (false, "no \"number\" here"));
}

#[test]
fn errors_of_machines_and_connections_are_tried_again() {
    let wrapped = |inner: BallistaError| {
        let shared = DataFusionError::Shared(Arc::new(inner.into_datafusion()));
        BallistaError::DataFusionError(Box::new(shared))
    };
    let fetch = || BallistaError::FetchFailed("e".into(), 1, 0, "gone".into());
    for error in [
        BallistaError::Cancelled,
        fetch(),
        wrapped(fetch()),
        BallistaError::GrpcConnectionError("refused".into()),
        wrapped(BallistaError::GrpcActionError("reset".into())),
        tonic::Status::unavailable("down").into(),
        tonic::Status::unknown("reset").into(),
        BallistaError::DataFusionError(Box::new(DataFusionError::ObjectStore(Box::new(
            object_store::Error::Generic { store: "S3", source: "503".into() },
        )))),
    ] {
        let text = of_task(&error);
        assert!(is_tried_again(&text), "{text}");
    }
    for text in [
        "Cancelled",
        "Job failed due to stage 2 failed: Stage 2 has failed 1 times, most recent failure reason: \"gone\"\n",
        "Job failed due to stage 2 failed: Task 3 in Stage 2 failed 1 times, fail the stage, most recent failure \
         reason: \"Task failed due to IO error: reset\"\n",
        "Job failed due to stage 2 failed: Tasks [3, 4] in Stage 2 failed 1 times, fail the stage, most recent \
         failure reason: \"Task failed due to IO error: reset\"\n",
        "all executors were lost and no executor re-registered within 9s; no executors remain to run the tasks",
    ] {
        assert!(is_tried_again(text), "{text}");
    }
}

#[test]
fn errors_of_the_query_are_not_tried_again_whatever_they_quote() {
    for word in [
        "there is no column 'connected_at'",
        "Cancelled",
        "FetchFailed(",
        "an executor could not fetch",
        "Connection transport Unavailable",
        "ObjectStore(",
        "Stage 2 has failed 1 times, most recent failure reason: ",
    ] {
        let plan = || DataFusionError::Plan(word.to_owned());
        for error in [
            BallistaError::DataFusionError(Box::new(plan())),
            BallistaError::DataFusionError(Box::new(DataFusionError::Shared(Arc::new(plan())))),
            BallistaError::ArrowError(Box::new(ArrowError::CastError(word.to_owned()))),
            BallistaError::General(word.to_owned()),
            BallistaError::Internal(word.to_owned()),
            tonic::Status::invalid_argument(word).into(),
        ] {
            let text = of_task(&error);
            assert!(!is_tried_again(&text), "{text}");
            let planning = format!("Error planning job x: {error:?}");
            assert!(!is_tried_again(&planning), "{planning}");
        }
    }
    let unknown = "Job failed due to stage 2 failed: Task 3 in Stage 2 failed with unknown failure reasons, fail the stage\n";
    assert!(!is_tried_again(unknown));
}
