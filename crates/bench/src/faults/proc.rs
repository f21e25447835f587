//! Resources of a process, as the kernel reports them: descriptors, children, memory.

use std::fs;

use crate::Failure;
use crate::charge;

/// Resources of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holdings {
    pub(super) mebibytes: u32,
    pub(super) descriptors: usize,
    pub(super) children: usize,
    /// Children that ended and were not waited for.
    pub(super) zombies: usize,
}

impl Holdings {
    pub(super) fn of(process: u32) -> Result<Self, Failure> {
        let children = children(process);
        Ok(Self {
            mebibytes: charge::resident_kibibytes(process)? / 1024,
            descriptors: fs::read_dir(format!("/proc/{process}/fd"))?.count(),
            zombies: children.iter().filter(|child| child.zombie).count(),
            children: children.len(),
        })
    }

    /// Returns true if `after` is no more than this: memory may grow by a tenth or by `more` MiB.
    pub(super) fn allows(self, after: Self, more: u32) -> bool {
        after.mebibytes <= self.mebibytes + more.max(self.mebibytes / 10)
            && after.descriptors <= self.descriptors
            && after.children <= self.children
            && after.zombies == 0
    }
}

/// A child of a process.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) process: u32,
    zombie: bool,
}

impl Child {
    /// Its command line, and its environment if it is readable.
    pub(super) fn told(&self) -> (String, Vec<u8>) {
        let read = |name| fs::read(format!("/proc/{}/{name}", self.process)).unwrap_or_default();
        (String::from_utf8_lossy(&read("cmdline")).replace('\0', " "), read("environ"))
    }
}

/// The children of a process and of its keepers, without the keepers.
pub(super) fn children(process: u32) -> Vec<Child> {
    let keepers = charge::keepers(process).unwrap_or_default();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let child = |name: &str| {
        let pid: u32 = name.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of a program can have anything in it but ends with the last bracket.
        let mut words = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, parent) = (words.next()?, words.next()?.parse::<u32>().ok()?);
        let is_child = keepers.contains(&parent) && !keepers.contains(&pid);
        is_child.then_some(Child { process: pid, zombie: state == "Z" })
    };
    let entries = entries.filter_map(Result::ok);
    entries.filter_map(|entry| child(entry.file_name().to_str()?)).collect()
}

/// Returns true if a process exists and is no zombie.
pub(super) fn lives(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Lists the open descriptors of a process in one line, with the ports of its sockets.
pub(super) fn open(process: u32) -> String {
    let links = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten();
    let links = links.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let way = |inode: &str| {
        let row = table.lines().find(|row| row.split_whitespace().nth(9) == Some(inode))?;
        let words: Vec<&str> = row.split_whitespace().collect();
        let port = |address: &str| u16::from_str_radix(address.rsplit(':').next()?, 16).ok();
        Some(format!("{} to {} ({})", port(words[1])?, port(words[2])?, words[3]))
    };
    let told = links.filter_map(|link| {
        let link = link.to_string_lossy().into_owned();
        let inode = link.strip_prefix("socket:[")?.strip_suffix(']')?;
        Some(way(inode).unwrap_or_else(|| "another socket".to_owned()))
    });
    told.collect::<Vec<_>>().join(", ")
}
