use std::path::Path;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;

fn settings(folder: &Path, file_bytes: u64, queued_lines: usize) -> ServerLogSettings {
    let limits = ServerLogLimits { file_bytes, queued_lines };
    ServerLogSettings::new(folder.to_owned(), limits).unwrap()
}

fn texts(lines: &[ServerLogLine]) -> Vec<(&str, &str)> {
    lines.iter().map(|line| (line.source.as_str(), line.text.as_str())).collect()
}

#[tokio::test]
async fn lines_are_on_disk_once_the_hub_has_waited_and_survive_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let server: ServerId = "files".parse().unwrap();
    let settings = settings(&folder.path().join("logs"), 1 << 20, 100);
    for _ in 0..2 {
        let tracker = TaskTracker::new();
        let tasks = ServerTasks::new(tracker.clone(), CancellationToken::new());
        let log = ServerLog::new(Some(&settings), &server, &tasks);
        log.event("process started");
        log.stderr_line("a\u{1b}[2J\rb \n\nc".to_owned().into());
        log.stderr_line("  ".to_owned().into());
        assert_eq!(log.last_line().unwrap().for_operator(), "a\u{1b}[2J\rb \n\nc");
        tracker.close();
        tracker.wait().await;
    }
    let lines = ServerLogFile::new(&settings.folder, &server).lines().unwrap();
    let once = [
        ("consort", "process started"),
        ("stderr", r"a\u{1b}[2J\rb"),
        ("stderr", ""),
        ("stderr", "c"),
        ("stderr", ""),
    ];
    assert_eq!(texts(&lines), [once, once].concat());
    assert_eq!(lines[0].pid, std::process::id());
    assert!(lines[0].seconds().is_some());
    let names: Vec<String> = ServerLogFile::all(&settings.folder)
        .unwrap()
        .iter()
        .map(|log| log.server().to_string())
        .collect();
    assert_eq!(names, ["files"]);
}

#[tokio::test]
async fn lines_above_the_queue_are_omitted_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let server: ServerId = "files".parse().unwrap();
    let settings = settings(folder.path(), 1 << 20, 2);
    let tracker = TaskTracker::new();
    let tasks = ServerTasks::new(tracker.clone(), CancellationToken::new());
    let log = ServerLog::new(Some(&settings), &server, &tasks);
    log.stderr_line("1\n2\n3\n4".to_owned().into());
    tracker.close();
    tracker.wait().await;
    let lines = ServerLogFile::new(folder.path(), &server).lines().unwrap();
    let omitted = ("consort", "2 lines were omitted: the disk is too slow");
    assert_eq!(texts(&lines), [("stderr", "1"), ("stderr", "2"), omitted]);
}

#[test]
fn a_follower_reads_on_after_a_rotation_and_never_half_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let server: ServerId = "files".parse().unwrap();
    let log = ServerLogFile::new(folder.path(), &server);
    let (lines, mut follower) = log.follow().unwrap();
    assert_eq!(lines, []);
    let writer = RotatedFile::new(log.path().to_owned(), 200);
    let line = |text: &str| format_line("2026-11-18T15:00:00.000Z", ServerLogSource::Stderr, text);
    writer.append(line("one").as_bytes()).unwrap();
    assert_eq!(texts(&follower.next_lines().unwrap()), [("stderr", "one")]);
    let (begin, rest) = (line("two"), line("three"));
    writer.append(&begin.as_bytes()[..30]).unwrap();
    assert_eq!(follower.next_lines().unwrap(), []);
    writer.append(&begin.as_bytes()[30..]).unwrap();
    writer.append(rest.as_bytes()).unwrap();
    writer.append(line(&"x".repeat(60)).as_bytes()).unwrap();
    let more = follower.next_lines().unwrap();
    assert_eq!(texts(&more), [("stderr", "two"), ("stderr", "three"), ("stderr", &"x".repeat(60))]);
    assert_eq!(follower.next_lines().unwrap(), []);
    assert!(log.bytes() > 200);
}

#[test]
fn a_size_of_zero_writes_no_logs() {
    let limits = ServerLogLimits { file_bytes: 0, ..ServerLogLimits::default() };
    assert_eq!(ServerLogSettings::new("logs".into(), limits), None);
}
