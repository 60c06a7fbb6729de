//! Saving and merging of profiles.

use std::collections::BTreeMap;
use std::path::Path;

use evenkeel::evaluate::{AdvisorOptions, Profile};
use evenkeel::source::{Export, InputOptions, InputPath, SourceError};
use evenkeel::targets::Target;
use evenkeel::units::{ByteSize, counted};

use crate::cli::evaluate::args::Args;
use crate::cli::evaluate::failures::profile_failure;
use crate::cli::local_path::LocalPath;
use crate::cli::{Failure, Output};

/// Refuses arguments that cannot be combined with profiles.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    if args.save.is_some() && args.mask_values {
        return Err(Failure::wrong_usage(
            "--save writes key values into the profile, which --mask-values should hide; omit one of them",
        ));
    }
    // Fail now rather than after a long read.
    if let Some(folder) = args.save.as_deref().and_then(Path::parent)
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        return Err(Failure::wrong_usage(format!("--save: there is no folder {}", folder.display())));
    }
    if let Some(path) = &args.save {
        Profile::check_target(path).map_err(profile_failure)?;
    }
    if (args.save.is_some() || !args.merge.is_empty()) && args.workers.are_given() {
        return Err(Failure::wrong_usage("--save and --merge work on this machine, not on a cluster"));
    }
    Ok(())
}

/// Reads the profiles to merge.
pub(super) fn read(paths: &[LocalPath]) -> Result<Vec<Profile>, Failure> {
    paths.iter().map(|path| Profile::read(path).map_err(profile_failure)).collect()
}

/// Sets the options to count new rows like the rows of a profile.
pub(super) fn count_as(
    options: AdvisorOptions,
    args: &Args,
    profile: &Profile,
) -> Result<AdvisorOptions, Failure> {
    let given = profile.options();
    let first = given.placements.first().copied().unwrap_or_default();
    if let Some(target) = args.target.filter(|target| target.function() != first) {
        return Err(Failure::wrong_usage(format!(
            "--target {target}: {} has figures for {first}; save the profiles with the same --target",
            profile.name()
        )));
    }
    let table = if args.name.is_none() { profile.table().to_owned() } else { options.table.clone() };
    let target = args.target.or(Target::from_function(first)).unwrap_or_default();
    Ok(AdvisorOptions { table, target, ..profile.options_like(options) })
}

/// Opens an export with the types of the columns of a profile.
pub(super) fn open(
    inputs: &[InputPath],
    options: InputOptions,
    types: &BTreeMap<String, evenkeel::table::ColumnType>,
    profile: Option<&Profile>,
) -> Result<Export, SourceError> {
    let export = Export::open(inputs, options.clone(), types)?;
    let known = profile.map(Profile::columns).unwrap_or_default();
    let find = |name: &str| known.iter().find(|column| column.name == name);
    let others = export.columns().iter().filter_map(|column| {
        let known = find(&column.name).filter(|known| known.column_type != column.column_type)?;
        Some((known.name.clone(), known.column_type))
    });
    let others: BTreeMap<_, _> = others.collect();
    if others.is_empty() || inputs.contains(&InputPath::Stdin) {
        return Ok(export.with_types(&others));
    }
    Export::open(inputs, options, &others)
}

/// Writes a profile, and reports its content.
pub(super) fn write(profile: &Profile, path: &LocalPath, out: &Output) -> Result<(), Failure> {
    profile.write(path).map_err(profile_failure)?;
    let bytes = std::fs::metadata(&**path).map(|file| file.len()).unwrap_or_default();
    let mut text = format!(
        "{} has the profile of {}, in {}",
        path.display(),
        counted(profile.rows(), "row"),
        ByteSize(bytes)
    );
    let reduced = profile.reduced_keys();
    if !reduced.is_empty() {
        text.push_str(&format!(
            "; to fit --profile-size, it keeps estimates or sums of {}",
            reduced.join(", ")
        ));
    }
    out.note(&text);
    Ok(())
}
