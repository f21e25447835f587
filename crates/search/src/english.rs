//! English vocabulary: stop words, question words and synonyms.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::stem::stem;

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

/// Synonyms, one set a line: first verbs of tools, then their objects.
const SYNONYMS: &str = "
    delete remove erase destroy drop
    create add make insert new
    find search lookup query
    get fetch retrieve read show view
    list enumerate browse
    update edit modify change set
    send post publish
    start launch run execute
    stop cancel kill terminate abort
    calculate compute
    convert transform translate
    analyze analyse analysis
    summary summarize overview
    copy duplicate clone
    rename move
    merge combine join
    compare diff difference
    verify validate check
    download export
    upload import
    install deploy
    permission access role
    file document
    folder directory
    repository repo
    image picture photo
    email mail
    message chat
    user account
    error failure exception
    price cost
    buy purchase shop
    stock share
    movie film
    music song
    job career
    car vehicle
    house home property
    travel trip
    hotel accommodation
    restaurant dining
    weather forecast
    calendar schedule
    meeting appointment
    picture photograph
    website site webpage
    database db
    configuration config settings";

static STOP_WORD_SET: LazyLock<HashSet<&str>> =
    LazyLock::new(|| STOP_WORDS.split_whitespace().collect());

static QUESTION_WORD_SET: LazyLock<HashSet<&str>> =
    LazyLock::new(|| QUESTION_WORDS.split_whitespace().collect());

/// The synonyms of a stem, as stems in the order of the table.
static SYNONYM_INDEX: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut same: HashMap<String, Vec<String>> = HashMap::new();
    for line in SYNONYMS.lines() {
        let stems: Vec<String> =
            line.split_whitespace().map(|word| stem(word).into_owned()).collect();
        for one in &stems {
            let others = same.entry(one.clone()).or_default();
            for other in &stems {
                if other != one && !others.contains(other) {
                    others.push(other.clone());
                }
            }
        }
    }
    same
});

/// Returns true for a stop word, in lower case.
pub fn is_stop_word(word: &str) -> bool {
    word.len() <= LONGEST_STOP && STOP_WORD_SET.contains(word)
}

/// Returns true for a question word.
pub(crate) fn is_question_word(word: &str) -> bool {
    QUESTION_WORD_SET.contains(word)
}

/// Returns the synonyms of a stem.
pub(crate) fn synonyms(stem: &str) -> &'static [String] {
    SYNONYM_INDEX.get(stem).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_a_word_has_it_standing_for_itself() {
        for (one, others) in SYNONYM_INDEX.iter() {
            for other in others {
                assert!(synonyms(other).contains(one), "{one} {other}");
            }
        }
        assert_eq!(synonyms("delet"), ["remov", "eras", "destroi", "drop"]);
        assert!(synonyms("unheard").is_empty());
    }

    #[test]
    fn no_word_is_in_two_lists_that_contradict_each_other() {
        assert!(STOP_WORD_SET.is_disjoint(&QUESTION_WORD_SET));
        assert_eq!(STOP_WORD_SET.iter().map(|word| word.len()).max(), Some(LONGEST_STOP));
        let said: Vec<&str> = SYNONYMS.split_whitespace().collect();
        assert!(said.iter().all(|word| !is_stop_word(word)));
    }
}
