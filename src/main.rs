//! The `evenkeel` command.
fn main() {}
