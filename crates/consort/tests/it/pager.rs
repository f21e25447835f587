//! Long output on a terminal, through a pager.

use std::fmt::Write;

use crate::Home;
use crate::terminal::Terminal;

/// A pager that marks what goes through it.
const MARKING: &str = "CONSORT_PAGER='sed s/^/PAGED:/'";

/// What a command shows on a terminal of 10 lines, and its exit code.
fn shown(home: &Home, variables: &str, arguments: &str) -> (String, i32) {
    Terminal::start_small(home, variables, arguments).end()
}

/// A home with a log of this many lines.
fn home_with_log(lines: usize) -> Home {
    let home = Home::new();
    let folder = home.path(".local/state/consort/logs");
    std::fs::create_dir_all(&folder).unwrap();
    let mut text = String::new();
    for line in 0..lines {
        writeln!(text, "2026-11-18T15:00:00.000Z 1 stderr line {line} of a log").unwrap();
    }
    std::fs::write(folder.join("files.log"), text).unwrap();
    home
}

#[test]
fn a_table_longer_than_the_screen_goes_through_the_pager_of_the_user() {
    let home = home_with_log(50);
    for variables in
        [MARKING, "PAGER='sed s/^/PAGED:/'", "PAGER=cat CONSORT_PAGER='sed s/^/PAGED:/'"]
    {
        let (text, code) = shown(&home, variables, "logs files");
        assert_eq!(text.matches("PAGED:").count(), 50, "{text}");
        assert!(text.contains("line 49 of a log") && code == 0, "{text}");
    }
}

#[test]
fn nothing_is_paged_that_is_short_or_for_a_program_or_where_the_user_wants_none() {
    let home = home_with_log(50);
    let whole = |(text, code): (String, i32), lines: usize| {
        assert_eq!((text.matches(" of a log").count(), code), (lines, 0), "{text}");
        assert!(!text.contains("PAGED:"), "{text}");
    };
    whole(shown(&home, MARKING, "logs files -n 9"), 9);
    whole(shown(&home, MARKING, "logs files --no-pager"), 50);
    whole(shown(&home, MARKING, "logs files --json"), 50);
    whole(shown(&home, &format!("{MARKING} TERM=dumb"), "logs files"), 50);
    whole(shown(&home, "CONSORT_PAGER= PAGER='sed s/^/PAGED:/'", "logs files"), 50);
    let mut piped = home.command(&["logs", "files"]);
    let piped = crate::Ran::from(piped.env("PAGER", "sed s/^/PAGED:/").output().unwrap());
    whole((piped.out, piped.code), 50);
}

#[test]
fn a_pager_that_does_not_exist_costs_nothing() {
    let home = home_with_log(50);
    let (text, code) = shown(&home, "CONSORT_PAGER=no-such-pager", "logs files");
    assert_eq!((text.matches(" of a log").count(), code), (50, 0), "{text}");
    // Without `less`, and without any other program.
    let (text, code) = shown(&home, "PATH=/nonexistent", "logs files");
    assert_eq!((text.matches(" of a log").count(), code), (50, 0), "{text}");
}

#[test]
fn leaving_the_pager_early_is_no_error() {
    // More than a pipe holds.
    let home = home_with_log(5000);
    let (text, code) = shown(&home, "CONSORT_PAGER='head -n 3'", "logs files -n 5000");
    assert_eq!((text.matches(" of a log").count(), code), (3, 0), "{text}");
}

#[test]
fn ctrl_c_in_a_pager_is_for_the_pager() {
    let home = home_with_log(50);
    let pager = r#"CONSORT_PAGER='trap "" INT; cat; echo WAITING; read key < /dev/tty; echo LEFT'"#;
    let mut terminal = Terminal::start_small(&home, pager, "logs files");
    terminal.until("WAITING");
    terminal.type_in(b"\x03\n");
    let (text, code) = terminal.end();
    assert!(text.contains("LEFT") && code == 0, "{code}: {text}");
}

#[test]
fn less_shows_the_first_screen_and_ends_with_q() {
    let home = home_with_log(5000);
    let mut terminal = Terminal::start_small(&home, "", "logs files -n 5000");
    terminal.until("line 8 of a log");
    terminal.type_in(b"q");
    let (text, code) = terminal.end();
    assert!(!text.contains("line 30 of a log") && code == 0, "{code}: {text}");
}
