//! Pages of the program's own code.

use std::fs;

use rustix::mm::{Advice, madvise};

/// Unmaps the pages of the program's code. The system maps each of them again when it runs, from its page cache.
///
/// The kernel maps 64 KiB around each page that a program runs. After the start most of them are unused, and they are
/// two thirds of the resident memory of an idle gateway.
pub fn unmap_code() {
    let Some(code) = fs::read_to_string("/proc/self/maps").ok().and_then(|maps| find_code(&maps))
    else {
        return;
    };
    let start = std::ptr::with_exposed_provenance_mut(code.start);
    #[expect(unsafe_code, reason = "no library offers it for the mapping of a program")]
    // SAFETY: the mapping is private, backed by a file and not writable, so that its pages are equal to the file's.
    // A page that is needed later is read from there, as it was the first time.
    let result = unsafe { madvise(start, code.len(), Advice::LinuxDontNeed) };
    if let Err(error) = result {
        tracing::debug!(%error, "cannot unmap the pages of the code");
    }
}

/// Finds the mapping of this function in `/proc/self/maps`, if it is private, read-only and backed by a file.
fn find_code(maps: &str) -> Option<std::ops::Range<usize>> {
    let here = find_code as *const () as usize;
    maps.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16));
        let range = start.ok()?..end.ok()?;
        let (permissions, _offset, _device, inode) =
            (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let is_code = permissions == "r-xp" && inode != "0" && range.contains(&here);
        is_code.then_some(range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resident kibibytes of the mapping of the code.
    fn resident(code: &std::ops::Range<usize>) -> usize {
        let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
        let start = format!("{:x}-", code.start);
        let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&start));
        let line = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    }

    #[test]
    fn code_that_ran_once_is_not_resident_afterwards_and_runs_again() {
        let code = find_code(&fs::read_to_string("/proc/self/maps").unwrap()).unwrap();
        let schema =
            || serde_json::to_string_pretty(&serde_json::json!({ "a": [1.5, null] })).unwrap();
        let first = schema();
        let before = resident(&code);
        unmap_code();
        let after = resident(&code);
        assert!(after < before, "{before} KiB before, {after} KiB after");
        assert_eq!(schema(), first);
    }

    #[test]
    fn only_a_private_read_only_mapping_of_a_file_is_code() {
        let here = find_code as *const () as usize;
        let map = |permissions: &str, inode: &str| {
            find_code(&format!("{here:x}-{:x} {permissions} 0 fe:00 {inode} /bin/x", here + 4096))
        };
        assert!(map("r-xp", "7").is_some());
        for (permissions, inode) in [("rwxp", "7"), ("r-xs", "7"), ("r--p", "7"), ("r-xp", "0")] {
            assert_eq!(map(permissions, inode), None, "{permissions} {inode}");
        }
        assert_eq!(find_code("1000-2000 r-xp 0 fe:00 7 /bin/x\nnonsense"), None);
    }
}
