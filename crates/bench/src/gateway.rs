//! Cost of a gateway, compared with a direct connection to a server and a proxy that only forwards bytes.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::Failure;
use crate::load::Work;
use crate::options::Format;
use crate::results;

mod allocations;
mod compare;
mod field;
mod identities;
mod idle;
mod memory;
mod options;
pub(crate) mod peers;
pub(crate) mod process;
mod progress;
mod start;
mod tables;
mod upstreams;

pub(crate) use field::listed;
pub(crate) use options::{Consort, Options};
pub(crate) use process::{Process, configure, configured, signal, started};

use compare::{Comparison, Course, Target};
use field::{By, Field, PREFIX, Via};
use options::Section;

/// Sizes of the text of a call, and of a large result.
const ECHO: usize = 1 << 10;
const BIG: usize = 1 << 20;
const HUGE: usize = 8 << 20;

/// The steps of a call that reports its progress.
const STEPS: u32 = 100;

/// Number of tools that are never called; with the others there are 500.
const FILLERS: usize = 496;

/// Results; a section that was not measured is absent.
#[derive(Debug, Default, Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    big: Option<Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    huge: Option<Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lists: Option<Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Vec<progress::Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstreams: Option<Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<Vec<idle::Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Vec<memory::Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identities: Option<Vec<identities::Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Vec<start::Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocations: Option<Vec<allocations::Row>>,
}

/// Measures a gateway and prints the report.
pub(crate) fn gateway(options: &Options) -> Result<(), Failure> {
    // The load runs here, on one thread; whoever is charged for anything is a process of its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(measure(options))?;
    let text = match options.format {
        Format::Json => serde_json::to_string(&report)?,
        Format::People => report.to_text(),
    };
    results::publish(&text)
}

async fn measure(options: &Options) -> Result<Report, Failure> {
    let consort = options.consort.program()?;
    let consort = consort.as_deref();
    let mut report = Report::default();
    // First, while nothing else runs.
    if options.wants(Section::Start) {
        report.start = Some(start::measure(consort, options).await?);
    }
    one_server(consort, options, &mut report).await?;
    if options.wants(Section::Lists) {
        let field = Field::open(consort, FILLERS).await?;
        let course = Course {
            work: Work::List(Arc::new(field.listing())),
            clients: &[4],
            target: Some(Target { times_raw_cpu: 0.5, times_raw_rate: None }),
            weight: 1,
        };
        // A list comes out of the catalog, whatever server it went in from.
        let lists = compare::measure(&field, &course, options, |lane, client| {
            lane.by != By::Consort || (lane.upstream.via, lane.upstream.era) == (Via::Http, client)
        });
        report.lists = Some(lists.await?);
        field.close().await?;
    }
    if options.wants(Section::Upstreams) {
        report.upstreams = Some(upstreams::measure(consort, options).await?);
    }
    if options.wants(Section::Idle) {
        report.idle = Some(idle::measure(consort, options).await?);
    }
    if options.wants(Section::Memory) {
        report.memory = Some(memory::measure(consort, options).await?);
        if let Some(consort) = consort {
            report.identities = Some(identities::measure(consort, options).await?);
        }
    }
    if options.wants(Section::Allocations) {
        report.allocations = Some(allocations::measure(options).await?);
    }
    Ok(report)
}

/// Measures the sections that use one server.
async fn one_server(
    consort: Option<&Path>,
    options: &Options,
    report: &mut Report,
) -> Result<(), Failure> {
    let sections = [Section::Calls, Section::Big, Section::Huge, Section::Steps, Section::Progress];
    if !sections.map(|part| options.wants(part)).contains(&true) {
        return Ok(());
    }
    let field = Field::open(consort, 0).await?;
    if options.wants(Section::Calls) {
        let course = Course {
            work: Work::echo(PREFIX, ECHO),
            clients: &[1, 32, 256],
            target: Some(Target { times_raw_cpu: 2.0, times_raw_rate: Some(0.7) }),
            weight: 1,
        };
        report.calls = Some(compare::measure(&field, &course, options, |_, _| true).await?);
    }
    let big = |bytes, clients, weight| Course {
        work: Work::big(PREFIX, bytes),
        clients,
        target: Some(Target { times_raw_cpu: 1.5, times_raw_rate: None }),
        weight,
    };
    if options.wants(Section::Big) {
        let course = big(BIG, &[4], 1);
        report.big = Some(compare::measure(&field, &course, options, |_, _| true).await?);
    }
    if options.wants(Section::Huge) {
        let course = big(HUGE, &[4], 8);
        report.huge = Some(compare::measure(&field, &course, options, |_, _| true).await?);
    }
    if options.wants(Section::Steps) {
        let course =
            Course { work: Work::slow(PREFIX, 0, STEPS), clients: &[8], target: None, weight: 1 };
        report.steps = Some(compare::measure(&field, &course, options, |_, _| true).await?);
    }
    if options.wants(Section::Progress) {
        report.progress = Some(progress::measure(&field, options).await?);
    }
    field.close().await
}
