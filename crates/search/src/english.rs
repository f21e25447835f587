//! English vocabulary: stop words and question words.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Stop words, which say nothing of a tool; apostrophes leave their letters behind.
const STOP_WORDS: &str = "
    a about above after again against all also am an and any are as at be because been before being below between
    both but by can could did do does doing down during each few for from further had has have having he her here
    hers herself him himself his how i if in into is it its itself just let may me might more most must my myself
    no nor not now of off on once only or other our ours ourselves out over own same shall she should so some such
    than that the their theirs them themselves then there these they this those through to too under until up us
    very was we were what when where which while who whom why will with would you your yours yourself yourselves
    d ll m o re s t ve y ain aren couldn didn doesn don hadn hasn haven isn mightn mustn needn shan shouldn wasn
    weren won wouldn";

/// Length of the longest stop word.
const LONGEST_STOP: usize = 10;

/// Words by which people ask for anything. They may be a tool's name, so they count, but little.
const QUESTION_WORDS: &str = "
    additionally assist assistance fetch finally find get give hello help hi including interested know lastly like
    look looking need needs please provide recommend retrieve show specifically suggest tell thanks using want wants
    wondering";

static STOP_WORD_SET: LazyLock<HashSet<&str>> =
    LazyLock::new(|| STOP_WORDS.split_whitespace().collect());

static QUESTION_WORD_SET: LazyLock<HashSet<&str>> =
    LazyLock::new(|| QUESTION_WORDS.split_whitespace().collect());

/// Returns true for a stop word, in lower case.
pub fn is_stop_word(word: &str) -> bool {
    word.len() <= LONGEST_STOP && STOP_WORD_SET.contains(word)
}

/// Returns true for a question word.
pub(crate) fn is_question_word(word: &str) -> bool {
    QUESTION_WORD_SET.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_in_two_lists_that_contradict_each_other() {
        assert!(STOP_WORD_SET.is_disjoint(&QUESTION_WORD_SET));
        assert_eq!(STOP_WORD_SET.iter().map(|word| word.len()).max(), Some(LONGEST_STOP));
    }
}
