//! Packages that `scripts/package` makes: each is installed without a network, and its command is run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::Home;
use crate::install::{all_commands, output, root};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Makes the packages of `binary` in `folder`, fast rather than small.
fn package(binary: &Path, folder: &Path) -> Command {
    let mut command = Command::new(root().join("scripts/package"));
    command
        .arg(binary)
        .arg(folder)
        .env("PACKAGE_COMPRESSION", "fast")
        .env_remove("SOURCE_DATE_EPOCH");
    command
}

/// The binary under test without its symbols.
fn stripped(folder: &Path) -> PathBuf {
    let binary = folder.join("consort");
    let mut strip = Command::new("strip");
    output(strip.arg("-o").arg(&binary).arg(env!("CARGO_BIN_EXE_consort")));
    binary
}

/// The folder with the packages of the binary under test, made once.
fn packages() -> &'static Path {
    static PACKAGES: OnceLock<TempDir> = OnceLock::new();
    let made = PACKAGES.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        let binary = stripped(folder.path());
        output(&mut package(&binary, folder.path()));
        folder
    });
    made.path()
}

/// The file in the folder of packages that ends in `ending`.
fn made(beginning: &str, ending: &str) -> PathBuf {
    let files = std::fs::read_dir(packages()).unwrap().map(|entry| entry.unwrap().path());
    let mut matching = files.filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(beginning) && name.ends_with(ending)
    });
    let found = matching.next().unwrap_or_else(|| panic!("no {beginning}…{ending}"));
    assert_eq!(matching.next(), None);
    found
}

/// Runs an installed `consort` with an empty home: it has its version, and lists the tools of the demo.
fn runs(home: &Home, installed: &Path) {
    let run = |arguments: &[&str]| {
        let mut command = home.program(installed.to_str().unwrap(), arguments);
        output(command.stdin(Stdio::null()))
    };
    let version = run(&["--version"]);
    assert!(version.starts_with(&format!("consort {VERSION}\n")), "{version}");
    let tools = run(&["tools"]);
    assert!(tools.contains("builtin.echo"), "{tools}");
}

#[test]
fn a_wheel_installs_the_command_without_a_network() {
    let wheel = made("consort_mcp-", ".whl");
    let name = wheel.file_name().unwrap().to_str().unwrap();
    let tag = format!("consort_mcp-{VERSION}-py3-none-manylinux_2_");
    assert!(name.starts_with(&tag), "{name}");

    let home = Home::new();
    let python = testkit::fixtures::python("python");
    let venv = home.path("venv");
    output(home.program(python.to_str().unwrap(), &["-m", "venv"]).arg(&venv));
    let pip = venv.join("bin/pip");
    let flags =
        ["install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-cache-dir"];
    output(home.program(pip.to_str().unwrap(), &flags).arg(&wheel));
    runs(&home, &venv.join("bin/consort"));
    // Every file agrees with the record, or pip would find nothing to remove.
    let shown =
        output(&mut home.program(pip.to_str().unwrap(), &["show", "--files", "consort-mcp"]));
    for line in [&*format!("Version: {VERSION}"), "  ../../../bin/consort"] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    output(&mut home.program(pip.to_str().unwrap(), &["uninstall", "--yes", "consort-mcp"]));
    assert!(!venv.join("bin/consort").exists());
}

/// Installs npm tarballs into a folder of `home` and returns the path of the command.
fn install_npm(home: &Home, tarballs: &[PathBuf]) -> PathBuf {
    let folder = home.path("project");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("package.json"), "{}").unwrap();
    let flags = ["install", "--offline", "--no-audit", "--no-fund", "--no-update-notifier"];
    let mut npm = home.program("npm", &flags);
    output(npm.arg("--loglevel=error").args(tarballs).current_dir(&folder));
    folder.join("node_modules/.bin/consort")
}

#[test]
fn the_npm_packages_install_the_command_without_a_network() {
    let platform = made("consort-mcp-linux-", ".tgz");
    let main = made(&format!("consort-mcp-{VERSION}"), ".tgz");
    let home = Home::new();
    let command = install_npm(&home, &[platform, main]);
    runs(&home, &command);

    // The exit code is that of the binary.
    let mut wrong = home.program(command.to_str().unwrap(), &["no-such-command"]);
    assert_eq!(wrong.output().unwrap().status.code(), Some(2));
    // A signal reaches the binary: the gateway ends in order, which is code 0.
    let mut serve = home.program(command.to_str().unwrap(), &["serve", "--listen", "127.0.0.1:0"]);
    serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut serving = serve.spawn().unwrap();
    let mut lines = testkit::OutputLines::new(serving.stdout.take().unwrap());
    let first = lines.next().unwrap();
    assert!(first.starts_with("serving at http://127.0.0.1:"), "{first}");
    kill_process(Pid::from_child(&serving), Signal::TERM).unwrap();
    let rest = lines.count();
    assert_eq!(serving.wait().unwrap().code(), Some(0), "after {rest} lines");
}

#[test]
fn the_npm_command_without_its_platform_package_says_which_one_is_missing() {
    let main = made(&format!("consort-mcp-{VERSION}"), ".tgz");
    let home = Home::new();
    let command = install_npm(&home, &[main]);
    let failed = home.program(command.to_str().unwrap(), &["--version"]).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
    let error = String::from_utf8(failed.stderr).unwrap();
    assert!(error.starts_with("error: no binary of consort for linux-"), "{error}");
    assert!(error.contains("hint: install consort-mcp without `--omit=optional`"), "{error}");
}

/// The value of a field of the Debian package.
fn field(package: &Path, name: &str) -> String {
    let mut command = Command::new("dpkg-deb");
    output(command.arg("--field").arg(package).arg(name)).trim().to_owned()
}

/// Files of a completely installed Debian package, by their beginnings.
const INSTALLED: [(&str, &str); 10] = [
    ("etc/consort/mcp.json", "{\n"),
    ("usr/lib/systemd/system/consort.service", "# System service"),
    ("usr/lib/systemd/user/consort.service", "# User service"),
    ("usr/share/bash-completion/completions/consort", "_consort() {"),
    ("usr/share/zsh/vendor-completions/_consort", "#compdef consort"),
    ("usr/share/fish/vendor_completions.d/consort.fish", "# Print an optspec"),
    ("usr/share/doc/consort/copyright", "Format: https://www.debian.org/"),
    ("usr/share/doc/consort/LICENSE-MIT", "MIT License"),
    ("usr/share/doc/consort/README.md", "# Consort"),
    ("var/lib/dpkg/info/consort.conffiles", "/etc/consort/mcp.json\n"),
];

#[test]
fn the_debian_package_is_installed_removed_and_purged() {
    let package = made("consort_", ".deb");
    let home = Home::new();
    let system = home.path("system");
    for folder in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(system.join("var/lib/dpkg").join(folder)).unwrap();
    }
    std::fs::write(system.join("var/lib/dpkg/status"), "").unwrap();
    let dpkg = |action: &str, what: &str| {
        // The empty system has no C library and no shell. Its scripts run in ours and know its folder.
        let root = format!("--root={}", system.display());
        let flags = [&*root, "--force-depends,not-root,script-chrootless", action, what];
        output(&mut home.program("dpkg", &flags));
    };
    dpkg("--install", package.to_str().unwrap());
    runs(&home, &system.join("usr/bin/consort"));
    for (file, beginning) in INSTALLED {
        let text = std::fs::read_to_string(system.join(file)).unwrap();
        assert!(text.starts_with(beginning), "{file}: {}", &text[..text.len().min(80)]);
    }
    for command in all_commands() {
        let page = [&["consort".to_owned()], &command[..]].concat().join("-");
        let page = system.join(format!("usr/share/man/man1/{page}.1.gz"));
        assert!(page.is_file(), "{}", page.display());
    }

    std::fs::create_dir_all(system.join("var/lib/private/consort/state")).unwrap();
    dpkg("--remove", "consort");
    assert!(!system.join("usr/bin/consort").exists());
    assert!(system.join("etc/consort/mcp.json").exists());
    assert!(system.join("var/lib/private/consort").exists());
    dpkg("--purge", "consort");
    assert!(!system.join("etc/consort").exists());
    assert!(!system.join("var/lib/private/consort").exists());
}

#[test]
fn the_debian_package_names_the_libraries_that_the_binary_needs() {
    let package = made("consort_", ".deb");
    let architecture = output(Command::new("dpkg").arg("--print-architecture"));
    assert_eq!(
        ["Package", "Version", "Architecture", "Recommends"].map(|name| field(&package, name)),
        ["consort", VERSION, architecture.trim(), "ca-certificates"]
    );
    assert!(field(&package, "Description").starts_with("connects to many MCP servers"));

    // The same is read from the binary by other means.
    let symbols = output(Command::new("objdump").arg("-T").arg(env!("CARGO_BIN_EXE_consort")));
    let versions = symbols.split("GLIBC_2.").skip(1).filter_map(|rest| {
        let digits = rest.split(|character: char| !character.is_ascii_digit()).next()?;
        digits.parse::<u32>().ok()
    });
    let newest = versions.max().unwrap();
    assert_eq!(field(&package, "Depends"), format!("libc6 (>= 2.{newest}), libgcc-s1"));
    let wheel = made("consort_mcp-", ".whl");
    let tag = format!("-manylinux_2_{newest}_");
    assert!(wheel.to_str().unwrap().contains(&tag), "{}", wheel.display());
}

#[test]
fn packages_of_equal_input_are_equal() {
    let first = packages();
    let second = TempDir::new().unwrap();
    // Another time and another mask of permissions.
    let mut again = Command::new("sh");
    again.args(["-c", "umask 077; exec \"$0\" \"$@\""]);
    let packaging = package(&first.join("consort"), second.path());
    again
        .arg(packaging.get_program())
        .args(packaging.get_args())
        .env("PACKAGE_COMPRESSION", "fast");
    output(again.env_remove("SOURCE_DATE_EPOCH"));

    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(second.path()).unwrap() {
        let name = entry.unwrap().file_name();
        let (one, two) = (first.join(&name), second.path().join(&name));
        let equal = std::fs::read(one).unwrap() == std::fs::read(two).unwrap();
        assert!(equal, "{} differs", name.display());
        names.insert(name);
    }
    assert_eq!(names.len(), 4, "{names:?}");
}

/// An executable of macOS 12.3 on arm64 without code: its header, and the command with its oldest system.
fn mach_o() -> Vec<u8> {
    let header = [0xfeed_facf_u32, 0x0100_000c, 0, 2, 1, 24, 0, 0];
    let build_version = [0x32, 24, 1, 12 << 16 | 3 << 8, 13 << 16, 0];
    header.into_iter().chain(build_version).flat_map(u32::to_le_bytes).collect()
}

#[test]
fn the_platform_of_the_packages_is_that_of_the_binary() {
    let folder = TempDir::new().unwrap();
    let binary = folder.path().join("consort");
    std::fs::write(&binary, mach_o()).unwrap();
    let packages = folder.path().join("packages");
    output(&mut package(&binary, &packages));
    let files = std::fs::read_dir(&packages).unwrap();
    let names: BTreeSet<_> = files.map(|entry| entry.unwrap().file_name()).collect();
    let expected = [
        format!("consort-mcp-{VERSION}.tgz"),
        format!("consort-mcp-darwin-arm64-{VERSION}.tgz"),
        format!("consort_mcp-{VERSION}-py3-none-macosx_12_0_arm64.whl"),
    ];
    assert_eq!(names, expected.map(Into::into).into());
    let mut tar = Command::new("tar");
    tar.args(["-xzOf", &format!("consort-mcp-darwin-arm64-{VERSION}.tgz"), "package/package.json"]);
    let manifest = output(tar.current_dir(&packages));
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["os"], serde_json::json!(["darwin"]));
    assert_eq!(manifest["cpu"], serde_json::json!(["arm64"]));
}

#[test]
fn a_file_that_is_no_binary_is_refused_with_words() {
    let folder = TempDir::new().unwrap();
    let script = root().join("scripts/package");
    let failed = package(&script, folder.path()).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
    let error = String::from_utf8(failed.stderr).unwrap();
    assert!(error.contains("is no executable of Linux or macOS"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_systemd_units_are_valid_and_the_system_service_is_confined() {
    let home = Home::new();
    for unit in ["consort.service", "consort-user.service"] {
        // The program and its manual are those under test.
        let text = std::fs::read_to_string(root().join("packaging").join(unit)).unwrap();
        let text = text.replace("/usr/bin/consort", env!("CARGO_BIN_EXE_consort"));
        std::fs::write(home.path(unit), text).unwrap();
        let mut verify = home.program("systemd-analyze", &["verify", "--man=no", unit]);
        let verified = verify.output().unwrap();
        let error = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert!(verified.status.success() && error.is_empty(), "{unit}: {error}");
    }
    // At most 2.0 of 10, the exposure that systemd calls acceptable.
    let flags = ["security", "--offline=yes", "--threshold=20", "--no-pager", "consort.service"];
    output(&mut home.program("systemd-analyze", &flags));
}
