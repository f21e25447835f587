//! The searchable index of tools.

use std::collections::HashMap;
use std::sync::Arc;

use consort_core::Catalog;

use crate::corpus::{IndexedCorpus, IndexedTool};
use crate::document::ToolDocument;
use crate::limits::SearchSettings;
use crate::query::ParsedQuery;
use crate::rank;

/// A searchable index of tools.
///
/// ```
/// use consort_search::{ToolDocument, ToolIndex, SearchLimits};
///
/// let tool = |id: &str, description: &str| ToolDocument {
///     id: format!("git.{id}"),
///     name: id.to_owned(),
///     description: description.to_owned(),
///     ..ToolDocument::default()
/// };
/// let tools = [tool("createIssue", "Opens a ticket."), tool("delete_branch", "Deletes a branch.")];
/// let index = ToolIndex::new(tools, SearchLimits::default());
/// assert_eq!(index.search("please remove my old branches", 5)[0].id, "git.delete_branch");
/// assert_eq!(index.search("CREATEISSUE", 5)[0].id, "git.createIssue");
/// assert!(index.search("", 5).is_empty());
/// ```
#[derive(Debug)]
pub struct ToolIndex {
    settings: SearchSettings,
    corpus: IndexedCorpus,
    /// Names and ids in lower case, each with the documents that have it.
    exact: HashMap<String, Vec<usize>>,
    by_id: HashMap<String, usize>,
}

/// A tool that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchHit<'a> {
    /// Its name with its server: `server.name`.
    pub id: &'a str,
    /// Its position among the documents, or among the tools of the catalog.
    pub position: usize,
    /// Relevance; comparable within one search only.
    pub score: f32,
    /// True if the query is its name or id.
    pub exact: bool,
}

impl ToolIndex {
    /// An index of these documents, in their order.
    pub fn new(
        documents: impl IntoIterator<Item = ToolDocument>,
        settings: impl Into<SearchSettings>,
    ) -> Self {
        let settings = settings.into();
        let indexed = documents
            .into_iter()
            .map(|document| IndexedTool::new(document, None, &settings.limits));
        let indexed = indexed.collect();
        Self::build(indexed, settings)
    }

    /// An index of a catalog's tools, in their order.
    pub fn from_catalog(catalog: &Catalog, settings: impl Into<SearchSettings>) -> Self {
        Self::build(Vec::new(), settings.into()).with_catalog(catalog)
    }

    /// Returns the index of another catalog. Unchanged tools are not indexed again.
    #[must_use]
    pub fn with_catalog(&self, catalog: &Catalog) -> Self {
        let entries = catalog.tools.entries().iter().map(|entry| {
            let id = entry.id();
            let definition = entry.definition.clone();
            match self.by_id.get(&id).map(|&at| &self.corpus.documents[at]) {
                Some(known) if known.definition.as_ref() == Some(&definition) => IndexedTool {
                    id,
                    name: known.name.clone(),
                    definition: Some(definition),
                    word_counts: Arc::clone(&known.word_counts),
                },
                _ => IndexedTool::new(
                    ToolDocument::from_entry(entry, &self.settings.limits),
                    Some(definition),
                    &self.settings.limits,
                ),
            }
        });
        Self::build(entries.collect(), self.settings.clone())
    }

    fn build(documents: Vec<IndexedTool>, settings: SearchSettings) -> Self {
        let mut exact: HashMap<String, Vec<usize>> = HashMap::new();
        let mut by_id = HashMap::new();
        for (at, document) in documents.iter().enumerate() {
            by_id.insert(document.id.clone(), at);
            let id = document.id.to_lowercase();
            let name = document.name.to_lowercase();
            if name != id {
                exact.entry(name).or_default().push(at);
            }
            exact.entry(id).or_default().push(at);
        }
        Self { settings, corpus: IndexedCorpus::new(documents), exact, by_id }
    }

    /// The settings that it was built with.
    pub fn settings(&self) -> &SearchSettings {
        &self.settings
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.corpus.documents.len()
    }

    /// Returns true if there are no documents.
    pub fn is_empty(&self) -> bool {
        self.corpus.documents.is_empty()
    }

    /// Returns the `k` best matches, best first. Nothing matches an empty query.
    pub fn search(&self, query: &str, k: usize) -> Vec<SearchHit<'_>> {
        self.search_among(query, k, |_| true)
    }

    /// The same among the documents whose positions are `visible`: for callers that may not see all.
    pub fn search_among(
        &self,
        query: &str,
        k: usize,
        visible: impl Fn(usize) -> bool,
    ) -> Vec<SearchHit<'_>> {
        let read = ParsedQuery::new(query, &self.settings.limits);
        let ranked = rank::rank(&self.corpus, &read, &self.settings.synonyms, &visible);
        let named: Vec<usize> = self.exact_matches(query).filter(|&at| visible(at)).collect();
        let score = |at: usize| {
            ranked
                .iter()
                .find(|scored| scored.document as usize == at)
                .map_or(0.0, |scored| scored.score)
        };
        let first = named.iter().map(|&at| self.hit(at, score(at), true));
        let rest = ranked.iter().map(|scored| (scored.document as usize, scored.score));
        let rest = rest
            .filter(|(at, _)| !named.contains(at))
            .map(|(at, score)| self.hit(at, score, false));
        first.chain(rest).take(k.min(self.settings.limits.hits)).collect()
    }

    /// Returns the documents whose name or id is the query.
    fn exact_matches(&self, query: &str) -> impl Iterator<Item = usize> {
        let query = query.trim();
        let name = (query.len() <= self.settings.limits.query_bytes).then(|| query.to_lowercase());
        // `server:tool` is another spelling of `server.tool`.
        let other =
            name.as_ref().and_then(|name| name.split_once(':')).map(|(a, b)| format!("{a}.{b}"));
        let spellings = [name, other].into_iter().flatten();
        let found = spellings.filter_map(|name| self.exact.get(&name)).flatten().copied();
        let mut found: Vec<usize> = found.collect();
        found.sort_unstable();
        found.dedup();
        found.into_iter()
    }

    fn hit(&self, position: usize, score: f32, exact: bool) -> SearchHit<'_> {
        SearchHit { id: &self.corpus.documents[position].id, position, score, exact }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use consort_core::{Json, PrimitiveKind, ServerCatalog, ServerId};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::limits::SearchLimits;
    use crate::synonyms::SynonymTable;

    /// A catalog of servers with tools: each a name and a description.
    fn catalog(servers: &[(&str, &[(&str, &str)])]) -> Catalog {
        let definition = |(name, description): &(&str, &str)| {
            let definition = json!({ "name": name, "description": description });
            ((*name).to_owned(), Json::from(definition).to_object().unwrap())
        };
        let offers: BTreeMap<ServerId, ServerCatalog> = servers
            .iter()
            .map(|(server, tools)| {
                let tools = tools.iter().map(definition).collect();
                let shelves = BTreeMap::from([(PrimitiveKind::Tools, tools)]);
                (
                    server.parse().unwrap(),
                    ServerCatalog { lists: shelves, ..ServerCatalog::default() },
                )
            })
            .collect();
        Catalog::build(&offers)
    }

    fn office() -> ToolIndex {
        let catalog = catalog(&[
            (
                "files",
                &[
                    ("search", "Finds files by a part of their name."),
                    ("delete_file", "Removes one file for good."),
                    ("readFile", "The contents of a text file."),
                ],
            ),
            ("github", &[("create_issue", "Opens an issue."), ("list_webhooks", "All web hooks.")]),
            ("web", &[("search", "Searches the internet."), ("天気予報", "都市の天気を調べます")]),
        ]);
        ToolIndex::from_catalog(&catalog, SearchLimits::default())
    }

    fn ids<'a>(index: &'a ToolIndex, query: &str) -> Vec<&'a str> {
        index.search(query, 10).iter().map(|hit| hit.id).collect()
    }

    fn one(definition: &Value) -> ToolIndex {
        let document = |definition: &Value| {
            let text = |key: &str| definition[key].as_str().unwrap_or_default().to_owned();
            let (name, description) = (text("name"), text("description"));
            let mut document =
                ToolDocument { id: name.clone(), name, description, ..ToolDocument::default() };
            document.describe(&definition["inputSchema"], &SearchLimits::default());
            document
        };
        ToolIndex::new([document(definition)], SearchLimits::default())
    }

    #[test]
    fn a_name_or_an_id_comes_first_however_it_is_written() {
        let index = office();
        assert_eq!(ids(&index, "search")[..2], ["files.search", "web.search"]);
        assert_eq!(ids(&index, "web.search")[0], "web.search");
        assert_eq!(ids(&index, " Web:Search ")[0], "web.search");
        assert_eq!(ids(&index, "READFILE")[0], "files.readFile");
        let exact = index.search("web.search", 10).iter().map(|hit| hit.exact).collect::<Vec<_>>();
        assert_eq!((exact[0], exact[1]), (true, false));
    }

    #[test]
    fn words_find_what_they_mean() {
        let index = office();
        assert_eq!(ids(&index, "erase a file")[0], "files.delete_file");
        assert_eq!(ids(&index, "please open new issues for me")[0], "github.create_issue");
        assert_eq!(ids(&index, "what can git hub do")[0], "github.create_issue");
        assert_eq!(ids(&index, "webhook")[0], "github.list_webhooks");
        assert_eq!(ids(&index, "filecontents")[0], "files.readFile");
    }

    #[test]
    fn words_that_no_tool_has_are_taken_for_slips() {
        let index = office();
        assert_eq!(ids(&index, "isue"), ["github.create_issue"]);
        assert_eq!(ids(&index, "webhoks"), ["github.list_webhooks"]);
        assert_eq!(ids(&index, "interent"), ["web.search"]);
        assert!(ids(&index, "quaternion").is_empty());
    }

    #[test]
    fn queries_in_other_scripts_find_texts_in_them() {
        let index = office();
        assert_eq!(ids(&index, "今日の天気は"), ["web.天気予報"]);
        assert_eq!(ids(&index, "天"), ["web.天気予報"]);
    }

    /// An index of tools with names and descriptions.
    fn forge(settings: impl Into<SearchSettings>) -> ToolIndex {
        let tools = [
            ("create_pull_request", "Proposes a branch for review."),
            ("list_pr_files", "Files of a PR."),
            ("create_issue", "Opens an issue in a repository."),
            ("send_email", "Sends an electronic letter."),
            ("scale_kubernetes_pods", "Sets the number of replicas."),
            ("delete_file", "Takes it off the disk."),
            ("pull_image", "Answers a request of the registry with an image."),
        ];
        ToolIndex::from_catalog(&catalog(&[("forge", &tools)]), settings)
    }

    #[test]
    fn short_forms_of_the_field_and_phrases_find_each_other() {
        let index = forge(SearchLimits::default());
        let first = |query| ids(&index, query).first().copied().unwrap_or_default().to_owned();
        assert_eq!(first("merge request"), "forge.create_pull_request");
        assert_eq!(first("pull request"), "forge.create_pull_request");
        assert!(ids(&index, "pull request").contains(&"forge.list_pr_files"));
        assert_eq!(first("new ticket in my repo"), "forge.create_issue");
        assert_eq!(first("write a mail"), "forge.send_email");
        assert_eq!(first("k8s"), "forge.scale_kubernetes_pods");
        // The words of a phrase that are apart are not the phrase.
        assert_eq!(ids(&index, "PR"), ["forge.list_pr_files", "forge.create_pull_request"]);
    }

    #[test]
    fn queries_in_chinese_japanese_korean_and_russian_find_tools_described_in_english() {
        let index = forge(SearchLimits::default());
        let queries = [
            ("删除文件", "forge.delete_file"),
            ("发送电子邮件", "forge.send_email"),
            ("创建一个拉取请求", "forge.create_pull_request"),
            ("ファイルを削除", "forge.delete_file"),
            ("메일 전송", "forge.send_email"),
            ("удалить файлы", "forge.delete_file"),
            ("Отправка писем", "forge.send_email"),
            ("Создай задачу в репозитории", "forge.create_issue"),
        ];
        for (query, id) in queries {
            assert_eq!(ids(&index, query).first(), Some(&id), "{query}");
        }
    }

    #[test]
    fn forms_of_a_russian_word_find_each_other() {
        let tools =
            [("send", "Отправляет сообщение пользователю."), ("weather", "Погода в городе.")];
        let index = ToolIndex::from_catalog(&catalog(&[("ru", &tools)]), SearchLimits::default());
        assert_eq!(ids(&index, "СООБЩЕНИЯ пользователей"), ["ru.send"]);
        assert_eq!(ids(&index, "прогноз погоды")[0], "ru.weather");
    }

    #[test]
    fn synonyms_of_a_config_count_beside_the_built_in_ones() {
        let synonyms = SynonymTable::with_groups(["bin, delete file", "pod, 容器组"]).unwrap();
        let own = forge(SearchSettings { synonyms, ..SearchSettings::default() });
        let usual = forge(SearchSettings::default());
        for (query, id) in [("bin", "forge.delete_file"), ("容器组", "forge.scale_kubernetes_pods")]
        {
            assert_eq!(ids(&own, query), [id], "{query}");
            assert!(ids(&usual, query).is_empty(), "{query}");
        }
        assert_eq!(ids(&own, "k8s"), ids(&usual, "k8s"));
    }

    #[test]
    fn nothing_is_found_for_nothing() {
        let index = office();
        for query in ["", "  ", "?!", "\0"] {
            assert!(index.search(query, 10).is_empty(), "{query:?}");
        }
        assert!(index.search("file", 0).is_empty());
        assert!(ToolIndex::new([], SearchLimits::default()).search("file", 10).is_empty());
    }

    #[test]
    fn equals_stay_in_the_order_of_the_catalog() {
        let tools: Vec<(&str, &str)> = ["b", "a", "c"].map(|name| (name, "Sends mail.")).to_vec();
        let index = ToolIndex::from_catalog(&catalog(&[("post", &tools)]), SearchLimits::default());
        assert_eq!(ids(&index, "mail"), ["post.b", "post.a", "post.c"]);
    }

    #[test]
    fn what_is_not_visible_is_not_found_even_by_name() {
        let index = office();
        let found = index.search_among("files.search", 10, |position| position != 0);
        assert!(found.iter().all(|hit| hit.id != "files.search" && !hit.exact));
    }

    #[test]
    fn parameters_are_found_as_deep_as_the_limit_says() {
        let index = one(&json!({
            "name": "book",
            "inputSchema": { "properties": { "guest": { "properties": { "passport": {
                "description": "As printed", "anyOf": [{ "enum": ["diplomatic"] }]
            } } } }, "$defs": { "x": { "description": "luggage" } } },
        }));
        for query in ["guest", "passports", "printed", "diplomatic", "luggage"] {
            assert_eq!(ids(&index, query), ["book"], "{query}");
        }
        let deep = (0..100).fold(
            json!({ "description": "bottom" }),
            |inner, depth| json!({ "properties": { format!("level{depth}"): inner } }),
        );
        let index = one(&json!({ "name": "well", "inputSchema": deep }));
        assert!(ids(&index, "bottom").is_empty());
        assert_eq!(ids(&index, "level99"), ["well"]);
    }

    #[test]
    fn hostile_texts_and_queries_are_cut_short() {
        let flood = "spam eggs ".repeat(100_000) + "behind";
        let many: serde_json::Map<String, Value> = (0..1000)
            .map(|n| (format!("parameter{n}"), json!({ "enum": vec!["x"; 100] })))
            .collect();
        let index = one(&json!({
            "name": "flood", "description": flood, "inputSchema": { "properties": many },
        }));
        assert!(ids(&index, "behind").is_empty());
        assert_eq!(ids(&index, "eggs"), ["flood"]);
        assert_eq!(index.corpus.documents[0].word_counts.lengths.iter().max(), Some(&2048));
        let query = "quux ".repeat(10_000) + "eggs";
        assert!(ids(&index, &query).is_empty());
        assert_eq!(ids(&index, &"eggs ".repeat(10_000)), ["flood"]);
    }

    #[test]
    fn no_more_is_returned_than_the_limit_and_more_begins_like_less() {
        let names: Vec<String> = (0..400).map(|n| format!("mail_{n}")).collect();
        let texts: Vec<String> = (0..400).map(|n| "mail ".repeat(n % 7)).collect();
        let tools: Vec<_> =
            names.iter().zip(&texts).map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let index = ToolIndex::from_catalog(&catalog(&[("post", &tools)]), SearchLimits::default());
        let all = index.search("mail", usize::MAX);
        assert_eq!(all.len(), 100);
        assert_eq!(index.search("mail", 7), all[..7]);
    }

    const WORDS: [&str; 12] = [
        "mail",
        "mails",
        "send",
        "delete",
        "file",
        "getUser",
        "天気予報",
        "list",
        "issue",
        "of",
        "web",
        "hook",
    ];

    fn texts() -> impl Strategy<Value = Vec<(String, String)>> {
        let words = |most| proptest::collection::vec(proptest::sample::select(&WORDS[..]), 1..most);
        let tool = (words(4), words(8)).prop_map(|(name, text)| (name.join("_"), text.join(" ")));
        proptest::collection::vec(tool, 0..8)
    }

    fn catalog_of(servers: &[Vec<(String, String)>]) -> Catalog {
        let names = ["a", "b", "c"];
        let tools: Vec<Vec<(&str, &str)>> = servers
            .iter()
            .map(|tools| tools.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect())
            .collect();
        let servers: Vec<(&str, &[(&str, &str)])> =
            names.into_iter().zip(tools.iter().map(Vec::as_slice)).collect();
        catalog(&servers)
    }

    proptest! {
        #[test]
        fn an_updated_index_finds_what_a_new_one_finds(
            before in proptest::collection::vec(texts(), 3),
            after in proptest::collection::vec(texts(), 3),
            kept in 0..3usize,
            query in proptest::collection::vec(proptest::sample::select(&WORDS[..]), 1..5),
        ) {
            let (before, mut after) = (catalog_of(&before), after);
            after[kept] = before.tools.of(&["a", "b", "c"][kept].parse().unwrap())
                .map(|entry| (entry.name.clone(), entry.tool().description().unwrap()))
                .collect();
            let after = catalog_of(&after);
            let query = query.join(" ");
            let updated = ToolIndex::from_catalog(&before, SearchLimits::default()).with_catalog(&after);
            let new = ToolIndex::from_catalog(&after, SearchLimits::default());
            prop_assert_eq!(updated.search(&query, 50), new.search(&query, 50));
            let again = updated.with_catalog(&after);
            for (one, other) in updated.corpus.documents.iter().zip(&again.corpus.documents) {
                prop_assert!(Arc::ptr_eq(&one.word_counts, &other.word_counts));
            }
        }

        #[test]
        fn any_query_is_answered_by_each_tool_at_most_once(query in any::<String>(), k in 0..200usize) {
            let index = office();
            let hits = index.search(&query, k);
            let places: std::collections::BTreeSet<_> = hits.iter().map(|hit| hit.position).collect();
            prop_assert_eq!(places.len(), hits.len());
            prop_assert!(hits.len() <= k.min(index.len()));
            prop_assert!(hits.iter().all(|hit| hit.score.is_finite()));
        }
    }
}
