use super::*;

fn activity() -> Activity {
    Activity::new("ada", "psql", SocketAddr::from(([127, 0, 0, 1], 4000)))
}

#[test]
fn a_connection_is_active_during_a_statement_and_keeps_it_afterwards() {
    let mut activity = activity();
    assert_eq!((activity.state, activity.statement_began), (ActivityState::Idle, None));
    activity.begin("SELECT 1");
    assert_eq!((activity.state, activity.statement.as_str()), (ActivityState::Active, "SELECT 1"));
    assert_eq!(activity.transaction_began, activity.statement_began);
    activity.end(TransactionStatus::Idle, "other");
    assert_eq!((activity.state, activity.statement.as_str()), (ActivityState::Idle, "SELECT 1"));
    assert_eq!((activity.application.as_str(), activity.transaction_began), ("other", None));
}

#[test]
fn a_transaction_began_with_its_first_statement() {
    let mut activity = activity();
    activity.begin("BEGIN");
    let began = activity.transaction_began;
    activity.end(TransactionStatus::Transaction, "");
    assert_eq!(activity.state, ActivityState::InTransaction);
    activity.begin("SELECT x");
    activity.end(TransactionStatus::Error, "");
    assert_eq!((activity.state, activity.transaction_began), (ActivityState::InFailedTransaction, began));
}

#[test]
fn the_end_of_a_message_without_a_statement_changes_nothing() {
    let mut activity = activity();
    let before = activity.changed;
    activity.end(TransactionStatus::Transaction, "other");
    assert_eq!((activity.state, activity.changed), (ActivityState::Idle, before));
    assert_eq!(activity.application, "psql");
}

#[test]
fn long_statements_are_cut_between_characters() {
    let mut activity = activity();
    activity.begin(&"ü".repeat(MAX_STATEMENT));
    assert_eq!(activity.statement, "ü".repeat(MAX_STATEMENT / 2));
    activity.begin(&format!("x{}", "ü".repeat(MAX_STATEMENT)));
    assert_eq!(activity.statement.len(), MAX_STATEMENT - 1);
}
