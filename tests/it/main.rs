//! Tests of the whole: one binary, because each one links DataFusion.

mod commands;
mod common;
mod commit_boundary;
mod fixture;
mod flights;
mod formats;
mod layers;
mod model;
mod plans;
mod refusals;
mod scenarios;
