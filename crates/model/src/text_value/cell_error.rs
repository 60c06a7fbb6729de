//! Reasons why a cell is rejected.

use std::borrow::Cow;

/// Reason why a cell is rejected, without the value: " is not ..." follows the quoted value.
pub(super) type CellError = Cow<'static, str>;
