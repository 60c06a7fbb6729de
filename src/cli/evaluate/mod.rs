//! `evenkeel evaluate`.

mod args;
mod assessing;
mod failures;
mod inputs;
mod plan;
mod profiles;
mod tables;
mod thresholds;
mod workload;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use evenkeel::bounded::{BASELINE, read_text};
use evenkeel::evaluate::{AdvisorOptions, AdvisorReport, Drift, Profile, compare, read_partition_stats};
use evenkeel::report::{self, Layout};
use evenkeel::source::{Export, InputOptions};
use serde::Serialize;
use serde_json::Value;

use crate::cli::declaring::column_type;
pub(crate) use crate::cli::evaluate::args::Args;
use crate::cli::evaluate::assessing::{Assessing, Work, assess_in_background};
pub(crate) use crate::cli::evaluate::failures::failure;
use crate::cli::evaluate::inputs::open_inputs;
use crate::cli::evaluate::workload::statements;
use crate::cli::html_file;
use crate::cli::{Failure, Output};

/// Result as JSON.
#[derive(Debug, Serialize)]
struct Evaluated<'a> {
    #[serde(flatten)]
    assessment: &'a AdvisorReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<&'a [Drift]>,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let masks = args.mask_values;
    let result = evaluate(args, out).await;
    if masks { result.map_err(Failure::with_masked_paths) } else { result }
}

async fn evaluate(args: Args, out: &mut Output) -> Result<(), Failure> {
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    // Fail now rather than after a long read.
    args.html.as_deref().map_or(Ok(()), html_file::check)?;
    profiles::check(&args)?;
    let merged = profiles::read(&args.merge)?;
    let like = profiles::read(args.like.as_slice())?.pop();
    let types = args.types.iter().map(|text| column_type(text)).collect::<Result<BTreeMap<_, _>, _>>()?;
    let mut plan_of_args = plan::options(&args)?;
    let started = Instant::now();
    let assessing = Assessing { counter: args.workers.counter(out).await? };
    let base = like.as_ref().or(merged.first()).cloned();
    if let Some(base) = &base {
        plan_of_args = profiles::count_as(plan_of_args, &args, base)?;
    } else if let Some(exports) = tables::open(&args, &args.input.options()?).await? {
        return tables::run(&args, exports, &types, assessing, out).await;
    }
    let export = match args.inputs.is_empty() {
        true => None,
        false => Some(open_inputs(&args, types, &mut plan_of_args, base.clone(), out).await?),
    };
    if let Some(path) = &args.partition_stats {
        let is_named = args.input.table().is_some();
        let table = args.input.table().unwrap_or(&plan_of_args.table).to_owned();
        let path = path.to_path_buf();
        let rows = tokio::task::spawn_blocking(move || read_partition_stats(&path, &table, is_named)).await?;
        plan_of_args.partition_rows = rows?;
    }
    let columns = || base.as_ref().map(Profile::columns).unwrap_or_default().to_vec();
    let of_profiles = || Export::with_columns(Vec::new(), InputOptions::default(), columns());
    let schema =
        export.as_ref().map_or_else(|| of_profiles().schema().clone(), |export| export.schema().clone());
    let statements = statements(&args, &plan_of_args.table, &schema, out).await?;
    let plan = AdvisorOptions { statements, ..plan_of_args };
    let save = args.save.as_ref().map(|_| args.profile_size.0);
    let work = Work { export, plan, profiles: merged, save };
    let (mut assessment, profile) = assess_in_background(work, assessing, args.mask_values, out).await?;
    if let (Some(profile), Some(path)) = (profile, &args.save) {
        profiles::write(&profile, path, out)?;
    }
    assessment.seconds = started.elapsed().as_secs_f64();
    if args.mask_values {
        assessment.mask_values();
    }
    let now = serde_json::to_value(&assessment)?;
    let drift = baseline.map(|baseline| compare(&baseline, &now)).transpose().map_err(Failure::usage)?;
    if let Some(path) = &args.html {
        html_file::write(path, &report::html(&assessment), out)?;
    }
    out.page(|| (Some(report::html(&assessment)), Some(report::html_fragment(&assessment))));
    let verbose = args.verbose;
    let evaluated = Evaluated { assessment: &assessment, drift: drift.as_deref() };
    out.result(args.format, &evaluated, |evaluated, layout| {
        let mut text = match layout {
            Layout::Plain if !verbose => report::answer(evaluated.assessment),
            _ => report::assessment(evaluated.assessment, layout),
        };
        if let Some(drift) = evaluated.drift {
            text.push('\n');
            text.push_str(&report::drifts(drift, layout));
        }
        text
    })?;
    thresholds::check(&thresholds::crossed(&args, &assessment, drift.as_deref().unwrap_or_default(), None)?)
}

fn read_baseline(path: &Path) -> Result<Value, Failure> {
    let text = read_text(path, BASELINE)?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::wrong_usage(format!("{}: is not JSON: {error}", path.display())))
}
