//! Suggestions of similar names.

/// The candidates nearest to a name that was not found, best first, at most three.
///
/// ```
/// use consort_core::nearest;
///
/// let known = ["get_weather", "get_whether", "delete_everything"];
/// assert_eq!(nearest("get_wether", known), ["get_weather", "get_whether"]);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = name.to_lowercase();
    let limit = wanted.chars().count().div_ceil(3).max(1);
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let known = candidate.to_lowercase();
            // A part of the name is as good as a small slip.
            let part = wanted.len() >= 3
                && (known.contains(&wanted) || wanted.contains(&known) && known.len() >= 3);
            let slips = slips(&wanted, &known, limit);
            if part {
                Some((slips.unwrap_or(limit).min(1), candidate))
            } else {
                Some((slips?, candidate))
            }
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    // What is clearly worse than the best is no help.
    let best = near.first().map_or(0, |(slips, _)| *slips);
    near.retain(|(slips, _)| *slips <= best + 1);
    near.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

/// Returns the edit distance, with swaps of adjacent letters as one edit, if it is at most `limit`.
fn slips(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    Some(last[b.len()]).filter(|slips| *slips <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted_as_people_make_them() {
        assert_eq!(slips("search", "search", 3), Some(0));
        assert_eq!(slips("serach", "search", 3), Some(1));
        assert_eq!(slips("serch", "search", 3), Some(1));
        assert_eq!(slips("abc", "xyz", 2), None);
        assert_eq!(slips("", "ab", 2), Some(2));
    }

    #[test]
    fn what_is_far_is_not_suggested() {
        assert!(nearest("weather", ["search", "summarize"]).is_empty());
        assert_eq!(nearest("Weather", ["get_weather"]), ["get_weather"]);
    }
}
