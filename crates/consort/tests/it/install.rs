//! What is installed: the binary alone, a Debian package, a container, and all from the lock.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::Home;
use crate::docs::{commands, flags};

const CONSORT: &str = env!("CARGO_BIN_EXE_consort");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Every command with its words, `consort` itself among them.
pub(crate) fn all_commands() -> BTreeSet<Vec<String>> {
    let home = Home::new();
    let (mut found, mut waiting) = (BTreeSet::new(), vec![Vec::<String>::new()]);
    while let Some(command) = waiting.pop() {
        let arguments = command.iter().map(String::as_str).chain(["--help"]).collect::<Vec<_>>();
        let help = home.run(&arguments).out;
        waiting.extend(commands(&help).iter().map(|name| {
            let words = command.iter().map(String::as_str).chain([*name]);
            words.map(str::to_owned).collect()
        }));
        found.insert(command);
    }
    assert!(found.len() > 20, "the commands are found");
    found
}

#[test]
#[cfg(target_os = "linux")]
fn the_binary_needs_nothing_but_the_c_library() {
    let dynamic = output(Command::new("readelf").args(["--dynamic", "--wide", CONSORT]));
    let needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    let needed = needed.filter_map(|line| line.split_once('[')?.1.split_once(".so"));
    let needed: BTreeSet<_> = needed.map(|(name, _)| name).collect();
    assert!(needed.contains("libc"), "{dynamic}");
    // The loader is the C library's too, and is named where something asks it for thread-local storage.
    let known = ["libc", "libm", "libgcc_s", "ld-linux-x86-64", "ld-linux-aarch64"];
    let other: Vec<_> = needed.iter().filter(|name| !known.contains(name)).collect();
    assert!(other.is_empty(), "{other:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_debian_package_has_the_binary_its_manual_completions_and_licences() {
    let folder = TempDir::new().unwrap();
    let mut package = Command::new(root().join("packaging/deb"));
    // To pack is quick, to pack small is not.
    package.arg(folder.path()).env("CONSORT", CONSORT).env("DPKG_DEB_COMPRESSOR_TYPE", "none");
    output(&mut package);
    let version = env!("CARGO_PKG_VERSION");
    let architecture = output(Command::new("dpkg").arg("--print-architecture"));
    let architecture = architecture.trim();
    let package = folder.path().join(format!("consort_{version}_{architecture}.deb"));
    let field = |name: &str| {
        let mut command = Command::new("dpkg-deb");
        output(command.arg("--field").arg(&package).arg(name)).trim().to_owned()
    };
    assert_eq!(
        ["Package", "Version", "Architecture", "Recommends"].map(field),
        ["consort", version, architecture, "ca-certificates"]
    );
    let depends = field("Depends");
    assert!(depends.starts_with("libc6 (>= 2.") && depends.ends_with("), libgcc-s1"), "{depends}");
    assert!(
        field("Description").starts_with("connects to many MCP servers and exposes them as one\n")
    );

    let unpacked = folder.path().join("unpacked");
    output(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&unpacked));
    let version_line = output(Command::new(unpacked.join("usr/bin/consort")).arg("--version"));
    assert!(version_line.starts_with(&format!("consort {version}\n")), "{version_line}");
    for (file, beginning) in [
        ("bash-completion/completions/consort", "_consort() {"),
        ("zsh/vendor-completions/_consort", "#compdef consort"),
        ("fish/vendor_completions.d/consort.fish", "# Print an optspec"),
        ("doc/consort/copyright", "Format: https://www.debian.org/"),
        ("doc/consort/LICENSE-MIT", "MIT License"),
        ("doc/consort/README.md", "# Consort"),
    ] {
        let text = std::fs::read_to_string(unpacked.join("usr/share").join(file)).unwrap();
        assert!(text.starts_with(beginning), "{file}: {}", &text[..text.len().min(80)]);
    }
    for command in all_commands() {
        let page = [&["consort".to_owned()], &command[..]].concat().join("-");
        let page = unpacked.join(format!("usr/share/man/man1/{page}.1.gz"));
        assert!(page.is_file(), "{}", page.display());
    }
}

#[test]
fn completions_know_every_command_and_are_a_script() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&["completions", shell]).out;
        for name in all_commands().iter().flatten() {
            assert!(script.contains(name.as_str()), "{shell} does not know `{name}`");
        }
        let file = home.path(shell);
        std::fs::write(&file, script).unwrap();
        // Those that are there read it; none runs it.
        match Command::new(shell).arg("-n").arg(&file).output() {
            Ok(read) => assert!(read.status.success(), "{shell}: {read:?}"),
            Err(error) => assert!(shell != "bash", "{error}"),
        }
    }
}

/// The instructions of a container file: each with its words.
fn instructions() -> Vec<(String, String)> {
    let text = read("packaging/Containerfile");
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let split = lines.map(|line| line.split_once(' ').unwrap());
    split.map(|(word, rest)| (word.to_owned(), rest.to_owned())).collect()
}

#[test]
fn a_container_comes_from_pinned_images_and_from_what_is_there() {
    let mut stages = BTreeSet::new();
    for (word, rest) in instructions() {
        match word.as_str() {
            "FROM" => {
                let mut words = rest.split(' ');
                let image = words.next().unwrap();
                let pinned = image.split_once(':').is_some_and(|(_, tag)| tag != "latest");
                assert!(pinned || stages.contains(image), "`{image}` is not pinned");
                stages.extend(words.nth(1).map(str::to_owned));
            }
            "COPY" => {
                let mut words: Vec<_> = rest.split(' ').collect();
                words.pop();
                let stage = words[0].strip_prefix("--from=");
                if let Some(stage) = stage {
                    assert!(stages.contains(stage), "no stage `{stage}`");
                    assert_eq!(words[1..], ["/source/target/release/consort"]);
                } else {
                    for source in words {
                        assert!(root().join(source).exists(), "nothing at `{source}`");
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!(stages, ["build", "fetch"].map(str::to_owned).into());
    // What is copied into the image is what the build needs: the console's build is part of it.
    let ignored = read(".dockerignore");
    for path in ["Cargo.lock", "crates", "console/dist", "console"] {
        assert!(root().join(path).exists(), "`{path}` is gone");
        assert!(!ignored.lines().any(|line| line == path), "`{path}` is left out");
    }
}

#[test]
fn a_container_is_built_from_the_lock_offline() {
    let runs: Vec<_> = instructions().into_iter().filter(|(word, _)| word == "RUN").collect();
    let cargo: Vec<_> = runs.iter().filter(|(_, rest)| rest.contains("cargo ")).collect();
    let [(_, fetch), (_, build)] = cargo[..] else { panic!("{cargo:?}") };
    assert_eq!(fetch, "cargo fetch --locked");
    // Not `RUN --network=none`: the builders of Debian 12 do not know it.
    assert!(build.starts_with("cargo build --release --locked --offline"), "{build}");
    // Whoever fetches anything else does it before the build, or in the last image.
    let rust = read("Cargo.toml");
    let rust = rust.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    let image = format!("rust:{}-slim-", rust.trim_matches('"'));
    assert!(instructions()[0].1.starts_with(&image), "the image has another Rust than {rust}");
}

#[test]
fn a_container_starts_with_arguments_that_are_known() {
    let words = |wanted: &str| -> Vec<String> {
        let found = instructions().into_iter().find(|(word, _)| word == wanted).unwrap();
        serde_json::from_str(&found.1).unwrap()
    };
    assert_eq!(words("ENTRYPOINT"), ["consort"]);
    let command = words("CMD");
    assert_eq!(command[0], "serve");
    let help = Home::new().run(&["serve", "--help"]).out;
    let known = flags(&help);
    for flag in command.iter().filter(|word| word.starts_with('-')) {
        assert!(known.contains(&flag.as_str()), "`serve` does not know `{flag}`");
    }
    let (_, port) = instructions().into_iter().find(|(word, _)| word == "EXPOSE").unwrap();
    assert!(command.contains(&format!("0.0.0.0:{port}")), "{command:?} does not serve {port}");
}
