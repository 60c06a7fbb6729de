//! `evenkeel man`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap_mangen::Man;

use crate::cli::{Failure, Output, full_command};

/// Write the manual pages: one for the program, and one for each command.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel man | man -l -
  evenkeel man ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Folder for the pages, created if it does not exist; without it, the page of the program is
    /// printed.
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let mut pages = pages()?;
    let Some(dir) = &args.dir else {
        let (_, page) = pages.swap_remove(0);
        return out.text(&String::from_utf8_lossy(&page));
    };
    let cannot_write = |error| anyhow::anyhow!("{}: cannot write: {error}", dir.display());
    std::fs::create_dir_all(dir).map_err(cannot_write)?;
    for (name, page) in &pages {
        std::fs::write(dir.join(format!("{name}.1")), page).map_err(cannot_write)?;
    }
    out.note(&format!("{} pages are in {}", pages.len(), dir.display()));
    Ok(())
}

/// Returns the pages with their names, the program's first.
fn pages() -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut program = without_help(full_command());
    program.build();
    let mut pages = Vec::new();
    add_pages(&program, "evenkeel", &mut pages)?;
    Ok(pages)
}

/// Removes the command `help`, which has no page.
fn without_help(command: clap::Command) -> clap::Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn add_pages(command: &clap::Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    let mut page = Vec::new();
    // Building the command gave it the whole name to display.
    let source = format!("evenkeel {}", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).title(name.to_uppercase()).source(source).render(&mut page)?;
    pages.push((name.to_owned(), page));
    for inner in command.get_subcommands() {
        add_pages(inner, &format!("{name}-{}", inner.get_name()), pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(command: &clap::Command) -> usize {
        1 + command.get_subcommands().map(count).sum::<usize>()
    }

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let pages = pages().unwrap();
        assert_eq!(pages.len(), count(&full_command()));
        assert_eq!(pages[0].0, "evenkeel");
        let page = |name: &str| {
            let (_, page) = pages.iter().find(|(page_name, _)| page_name == name).unwrap();
            String::from_utf8(page.clone()).unwrap()
        };
        assert!(page("evenkeel").contains("evenkeel\\-evaluate(1)"));
        assert!(!page("evenkeel").contains("evenkeel\\-help(1)"));
        assert!(page("evenkeel-ingest").contains("\\-\\-delete\\-column"));
        assert!(page("evenkeel-spanner-migrate").contains("EVENKEEL-SPANNER-MIGRATE"));
    }
}
