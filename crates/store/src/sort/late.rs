//! Sorts entries that are mostly in order: most events arrive in time order, a few of them late.

/// Word and number of a row: sorts by word, then by number, which is the order of arrival.
pub(super) type Entry = (u64, u32);

/// If more than one in this many rows is out of order, all rows are sorted.
const MAX_LATE: usize = 8;

/// Sorts entries that are mostly in order: takes out the others, sorts them, and merges them back.
/// If too many are out of order, sorts all of them.
pub(super) fn sort_nearly_sorted(entries: Vec<Entry>) -> Vec<Entry> {
    if entries.is_sorted() {
        return entries;
    }
    match split_late(entries) {
        Ok((in_order, mut late)) => {
            late.sort_unstable();
            merge(&in_order, &late)
        }
        Err(mut unsorted) => {
            unsorted.sort_unstable();
            unsorted
        }
    }
}

/// Separates entries that are in order from those taken out. If too many would be taken out, the
/// error holds all entries.
fn split_late(entries: Vec<Entry>) -> Result<(Vec<Entry>, Vec<Entry>), Vec<Entry>> {
    let most = entries.len() / MAX_LATE;
    let mut in_order: Vec<Entry> = Vec::with_capacity(entries.len());
    let mut late = Vec::new();
    for entry in &entries {
        let behind_the_last = in_order.last().is_some_and(|last| last > entry);
        if !behind_the_last {
            in_order.push(*entry);
            continue;
        }
        // Either this one is late or the one before it was early: an early one is taken out.
        let fits_before = match in_order.len().checked_sub(2).and_then(|before| in_order.get(before)) {
            Some(before) => before <= entry,
            None => true,
        };
        if fits_before && let Some(early) = in_order.last_mut() {
            late.push(std::mem::replace(early, *entry));
        } else {
            late.push(*entry);
        }
        if late.len() > most {
            return Err(entries);
        }
    }
    Ok((in_order, late))
}

fn merge(in_order: &[Entry], late: &[Entry]) -> Vec<Entry> {
    let mut merged = Vec::with_capacity(in_order.len() + late.len());
    let mut rest = in_order;
    for entry in late {
        let before = run_before(rest, entry);
        let (run, after) = rest.split_at(before);
        merged.extend_from_slice(run);
        merged.push(*entry);
        rest = after;
    }
    merged.extend_from_slice(rest);
    merged
}

/// Number of the sorted entries that are less than `entry`, found by doubling steps.
fn run_before(sorted: &[Entry], entry: &Entry) -> usize {
    let mut step = 1;
    while sorted.get(step - 1).is_some_and(|other| other < entry) {
        step *= 2;
    }
    let within = sorted.get(..sorted.len().min(step)).unwrap_or_default();
    within.partition_point(|other| other < entry)
}
