//! Object stores: which requests a table makes, how exports in them are read, and what is refused.

#[cfg(feature = "cloud")]
mod credentials;
mod exports;
mod requests;
mod urls;
