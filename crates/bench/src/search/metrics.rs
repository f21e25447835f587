//! Quality metrics of a ranking.

use serde::Serialize;

use crate::folder::Question;

/// The means over all questions, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Quality {
    /// Recall in the first 1, 5 and 10 hits.
    pub(super) r1: f64,
    pub(super) r5: f64,
    pub(super) r10: f64,
    /// Normalised discounted cumulative gain of the first ten.
    pub(super) n10: f64,
    /// Questions with all their answers among the first ten.
    pub(super) c10: f64,
}

impl Quality {
    /// Computes the metrics from the hits of each question, best first; `id` returns the id of a hit.
    pub(super) fn of<'a>(
        questions: &[Question],
        found: &[Vec<usize>],
        id: impl Fn(usize) -> &'a str,
    ) -> Self {
        let each = questions.iter().zip(found).map(|(question, found)| {
            let ids: Vec<&str> = found.iter().map(|&at| id(at)).collect();
            Self::one(question, &ids)
        });
        Self::mean(each)
    }

    /// The mean of several.
    pub(super) fn mean(all: impl Iterator<Item = Self>) -> Self {
        let (mut sum, mut count) = (Self::default(), 0.0);
        for one in all {
            sum = sum.with(one, |a, b| a + b);
            count += 1.0;
        }
        sum.with(Self::default(), |sum, _| if count > 0.0 { sum / count } else { 0.0 })
    }

    fn with(self, other: Self, join: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            r1: join(self.r1, other.r1),
            r5: join(self.r5, other.r5),
            r10: join(self.r10, other.r10),
            n10: join(self.n10, other.n10),
            c10: join(self.c10, other.c10),
        }
    }

    fn one(question: &Question, ids: &[&str]) -> Self {
        // An answer is found where the first of its tools stands; a second one gains nothing.
        let place = |answer: &Vec<String>| {
            ids.iter().take(10).position(|id| answer.iter().any(|tool| tool == id))
        };
        let places: Vec<usize> = question.answers.iter().filter_map(place).collect();
        let answers = number(question.answers.len());
        let within =
            |k: usize| 100.0 * number(places.iter().filter(|place| **place < k).count()) / answers;
        let best: f64 = (0..question.answers.len().min(10)).map(gain).sum();
        Self {
            r1: within(1),
            r5: within(5),
            r10: within(10),
            // Not `sum`, which of nothing is -0.
            n10: 100.0 * places.iter().fold(0.0, |sum, &place| sum + gain(place)) / best,
            c10: if places.len() == question.answers.len() { 100.0 } else { 0.0 },
        }
    }
}

fn gain(place: usize) -> f64 {
    1.0 / (number(place) + 2.0).log2()
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(answers: &[&[&str]]) -> Question {
        let group = |group: &&[&str]| group.iter().map(|id| (*id).to_owned()).collect();
        Question { query: String::new(), answers: answers.iter().map(group).collect() }
    }

    fn quality(answers: &[&[&str]], found: &[&str]) -> String {
        let Quality { r1, r5, r10, n10, c10 } = Quality::one(&question(answers), found);
        format!("{r1:.1} {r5:.1} {r10:.1} {n10:.1} {c10:.1}")
    }

    #[test]
    fn early_answers_are_worth_more() {
        assert_eq!(quality(&[&["a"]], &["a", "b"]), "100.0 100.0 100.0 100.0 100.0");
        assert_eq!(quality(&[&["a"]], &["b", "a"]), "0.0 100.0 100.0 63.1 100.0");
        assert_eq!(quality(&[&["a"], &["b"]], &["a", "x"]), "50.0 50.0 50.0 61.3 0.0");
        assert_eq!(quality(&[&["a"]], &[]), "0.0 0.0 0.0 0.0 0.0");
    }

    #[test]
    fn of_a_group_one_tool_is_enough_and_two_are_no_better() {
        assert_eq!(quality(&[&["a", "b"]], &["b", "a"]), "100.0 100.0 100.0 100.0 100.0");
        assert_eq!(
            quality(&[&["a", "b"], &["c"]], &["a", "b", "c"]),
            "50.0 100.0 100.0 92.0 100.0"
        );
    }

    #[test]
    fn the_mean_of_nothing_is_nothing() {
        assert_eq!(Quality::mean(std::iter::empty()), Quality::default());
    }
}
