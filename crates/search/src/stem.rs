//! Porter's stemmer for English (1980, with his two later changes): `deleting` and `deletes` become `delet`.

use std::borrow::Cow;

use crate::cyrillic::stem_cyrillic;

/// Suffixes of the second step, where the rest has a measure above 0.
const SECOND: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
];

/// Suffixes of the third step, likewise.
const THIRD: &[(&str, &str)] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

/// Suffixes of the fourth step, removed where the rest has a measure above 1.
const FOURTH: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
];

/// Returns the stem of a word in lower case: Porter's for English letters, a light one for Cyrillic letters. Other words
/// stay as they are.
pub fn stem(word: &str) -> Cow<'_, str> {
    if word.len() <= 2 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        let letter = word.as_bytes().first().is_some_and(|byte| !byte.is_ascii());
        return letter.then(|| stem_cyrillic(word)).flatten().unwrap_or(Cow::Borrowed(word));
    }
    let mut stemmed = PorterStemmer { word: word.to_owned() };
    stemmed.remove_plural();
    stemmed.remove_past_and_progressive();
    stemmed.replace_final_y();
    stemmed.replace(SECOND);
    stemmed.replace(THIRD);
    stemmed.apply_fourth_step();
    stemmed.apply_fifth_step();
    Cow::Owned(stemmed.word)
}

struct PorterStemmer {
    word: String,
}

impl PorterStemmer {
    /// Returns the part before `ending`, if the word ends with it.
    fn before(&self, ending: &str) -> Option<&str> {
        self.word.strip_suffix(ending)
    }

    fn cut(&mut self, letters: usize) {
        self.word.truncate(self.word.len() - letters);
    }

    fn remove_plural(&mut self) {
        if self.word.ends_with("sses") || self.word.ends_with("ies") {
            self.cut(2);
        } else if self.word.ends_with('s') && !self.word.ends_with("ss") {
            self.cut(1);
        }
    }

    fn remove_past_and_progressive(&mut self) {
        if let Some(before) = self.before("eed") {
            if measure(before) > 0 {
                self.cut(1);
            }
            return;
        }
        let ending = ["ed", "ing"].into_iter().find(|ending| self.word.ends_with(ending));
        let Some(ending) = ending.filter(|ending| self.before(ending).is_some_and(has_vowel))
        else {
            return;
        };
        self.cut(ending.len());
        let word = self.word.as_str();
        if ["at", "bl", "iz"].iter().any(|ending| word.ends_with(ending)) {
            self.word.push('e');
        } else if ends_double(word) && !word.ends_with(['l', 's', 'z']) {
            self.cut(1);
        } else if measure(word) == 1 && ends_short(word) {
            self.word.push('e');
        }
    }

    fn replace_final_y(&mut self) {
        if self.before("y").is_some_and(has_vowel) {
            self.cut(1);
            self.word.push('i');
        }
    }

    /// Replaces the longest matching suffix; one that matches but leaves too little ends the step.
    fn replace(&mut self, table: &[(&str, &str)]) {
        let fits = table.iter().filter(|(ending, _)| self.word.ends_with(ending));
        if let Some((ending, replacement)) = fits.max_by_key(|(ending, _)| ending.len())
            && self.before(ending).is_some_and(|before| measure(before) > 0)
        {
            self.cut(ending.len());
            self.word.push_str(replacement);
        }
    }

    fn apply_fourth_step(&mut self) {
        let fits = FOURTH.iter().filter(|ending| self.word.ends_with(*ending));
        let Some(ending) = fits.max_by_key(|ending| ending.len()) else { return };
        let cuts = self.before(ending).is_some_and(|before| {
            measure(before) > 1 && (*ending != "ion" || before.ends_with(['s', 't']))
        });
        if cuts {
            self.cut(ending.len());
        }
    }

    fn apply_fifth_step(&mut self) {
        if let Some(before) = self.before("e") {
            let measure = measure(before);
            if measure > 1 || measure == 1 && !ends_short(before) {
                self.cut(1);
            }
        }
        if self.word.ends_with("ll") && measure(&self.word) > 1 {
            self.cut(1);
        }
    }
}

/// Returns for each letter true if it is a vowel; `y` is one after a consonant.
fn vowels(word: &str) -> impl Iterator<Item = bool> + '_ {
    let mut after_consonant = false;
    word.bytes().map(move |letter| {
        let vowel = match letter {
            b'a' | b'e' | b'i' | b'o' | b'u' => true,
            b'y' => after_consonant,
            _ => false,
        };
        after_consonant = !vowel;
        vowel
    })
}

fn has_vowel(word: &str) -> bool {
    vowels(word).any(|vowel| vowel)
}

/// Returns Porter's measure: the number of times that a consonant follows a vowel.
fn measure(word: &str) -> usize {
    let mut last = false;
    vowels(word).filter(|&vowel| std::mem::replace(&mut last, vowel) && !vowel).count()
}

fn ends_double(word: &str) -> bool {
    let bytes = word.as_bytes();
    let [.., a, b] = bytes else { return false };
    a == b && vowels(word).last() == Some(false)
}

/// Returns true for an end of consonant, vowel, consonant, the last not `w`, `x` or `y`: as in `fil(e)`.
fn ends_short(word: &str) -> bool {
    let kinds: Vec<bool> = vowels(word).collect();
    matches!(kinds.as_slice(), [.., false, true, false]) && !word.ends_with(['w', 'x', 'y'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_of_one_family_have_one_stem() {
        for family in [
            ["delete", "deletes", "deleted", "deleting"],
            ["query", "queries", "queried", "querying"],
            ["stop", "stops", "stopped", "stopping"],
            ["file", "files", "filed", "filing"],
            ["calculate", "calculation", "calculated", "calculator"],
        ] {
            let stems: Vec<_> = family.iter().map(|word| stem(word)).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
    }

    #[test]
    fn stems_are_those_of_porters_own_examples() {
        let examples = "caresses caress, ponies poni, ties ti, cats cat, feed feed, agreed agre, plastered plaster, \
            bled bled, motoring motor, sing sing, conflated conflat, troubled troubl, sized size, hopping hop, \
            falling fall, hissing hiss, failing fail, filing file, happy happi, sky sky, relational relat, \
            conditional condit, rational ration, digitizer digit, operator oper, feudalism feudal, \
            hopefulness hope, sensibiliti sensibl, triplicate triplic, formative form, electrical electr, \
            revival reviv, allowance allow, inference infer, adjustable adjust, replacement replac, \
            adoption adopt, effective effect, bowdlerize bowdler, probate probat, rate rate, cease ceas, \
            controll control, roll roll, sky sky, is is, archaeology archaeolog";
        for example in examples.split(", ") {
            let (word, expected) = example.split_once(' ').unwrap();
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn words_of_other_scripts_and_codes_stay() {
        for word in ["s3", "größe", "検索", "", "as", "ec2s"] {
            assert_eq!(stem(word), word);
        }
    }

    proptest! {
        #[test]
        fn a_stem_is_not_longer_than_its_word_and_never_empty(word in "[a-z]{1,20}") {
            let stem = stem(&word);
            prop_assert!(!stem.is_empty() && stem.len() <= word.len());
        }
    }
}
