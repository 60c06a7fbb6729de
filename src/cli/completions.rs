//! `evenkeel completions`.

use clap::Args as ClapArgs;
use clap_complete::{Shell, generate};

use crate::cli::{Failure, Output, full_command};

/// Print the completions of a shell: commands, options and their values.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel completions bash > ~/.local/share/bash-completion/completions/evenkeel
  evenkeel completions zsh > \"${fpath[1]}/_evenkeel\"
  evenkeel completions fish > ~/.config/fish/completions/evenkeel.fish")]
pub(crate) struct Args {
    /// Shell to complete in.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut full_command(), "evenkeel", &mut script);
    out.text(&String::from_utf8_lossy(&script))
}
