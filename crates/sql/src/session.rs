//! The planner, with the settings, functions and rules that all statements of a connection share.

use crate::aggregate::rule::AggregatesFromTrees;
use crate::catalog::files::{self, Files};
use crate::catalog::providers::{Attached, CATALOG, PUBLIC, Tables};
use crate::catalog::read_only::ReadOnly;
use crate::catalog::views::{PlanQuery, Views};
use crate::error::{Error, ErrorKind, Result};
use crate::functions;
use crate::joins;
use crate::metric::newest::NewestFirst;
use crate::options::ConnectionOptions;
use crate::relational::sorted::ScansInOrder;
use crate::statement::Statement as ParsedStatement;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProviderList, Session};
use datafusion::datasource::source_as_provider;
use datafusion::execution::context::{QueryPlanner, SQLOptions, SessionState};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{DmlStatement, LogicalPlan};
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement;
use std::collections::HashMap;
use std::sync::Arc;
use tidalite::Database;

/// The physical rules of DataFusion, with our rules placed after the rules that replace statistics by constants.
fn rules(use_statistics: bool) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    let at = rules
        .iter()
        .position(|rule| rule.name() == "aggregate_statistics");
    let at = at.map_or(0, |at| at + 1);
    rules.insert(at, Arc::new(ScansInOrder));
    if use_statistics {
        rules.insert(at, Arc::new(AggregatesFromTrees));
        rules.insert(at, Arc::new(NewestFirst));
    }
    rules
}

/// The logical rules of DataFusion, with our rule placed after the rule that moves conditions down to a join on time.
fn logical_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    let at = rules
        .iter()
        .position(|rule| rule.name() == "push_down_filter");
    rules.insert(
        at.map_or(0, |at| at + 1),
        Arc::new(joins::PushBelowTimeJoin),
    );
    rules
}

/// Plans the logical nodes of DataFusion, and the nodes that our rules insert.
#[derive(Debug)]
struct NodePlanner;

#[async_trait]
impl QueryPlanner for NodePlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
        let mut planners = functions::extension_planners();
        planners.push(Arc::new(joins::TimeJoinPlanner));
        let planner = DefaultPhysicalPlanner::with_extension_planners(planners);
        planner.create_physical_plan(plan, session).await
    }
}

/// Plans the queries of views, with the settings, functions and rules of a session.
struct ViewPlanner(Arc<SessionState>);

#[async_trait]
impl PlanQuery for ViewPlanner {
    async fn plan(&self, query: &str, tables: Arc<dyn CatalogProviderList>) -> Result<LogicalPlan> {
        let ParsedStatement::Read(query, None) = ParsedStatement::parse(query)? else {
            let problem = "the text is not a query";
            return Err(Error::new(ErrorKind::Plan, problem));
        };
        let mut session = self.0.as_ref().clone();
        session.register_catalog_list(tables);
        read_plan(&session, query).await
    }
}

/// Plans a statement that only reads.
async fn read_plan(session: &SessionState, statement: Statement) -> Result<LogicalPlan> {
    let plan = session.statement_to_plan(statement).await?;
    let reading = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    reading.verify_plan(&plan).map_err(|error| {
        let error = Error::from(error);
        Error::new(ErrorKind::Syntax, error)
    })?;
    Ok(plan)
}

/// Plans statements.
pub(crate) struct Planner {
    /// Settings, functions and rules. The catalog and the current time belong to the last statement. Creating a
    /// session for each statement would copy hundreds of functions.
    session: SessionState,
    /// The session that reads files of rows; `None` if statements may not read files.
    reader: Option<Arc<SessionState>>,
    /// The planner of the queries of views.
    views: Arc<ViewPlanner>,
    /// The database, for the tables that describe it.
    database: Database,
    /// The attached files.
    files: Files,
}

impl Planner {
    /// Creates a planner for queries on a database with these options.
    pub(crate) fn new(database: &Database, options: &ConnectionOptions) -> Result<Self> {
        let mut config = SessionConfig::new()
            .with_default_catalog_and_schema(CATALOG, PUBLIC)
            .with_create_default_catalog_and_schema(false)
            // `Tables` implements this schema itself, so that it can list views whose queries cannot be planned.
            .with_information_schema(false)
            .with_target_partitions(options.threads.max(1));
        let settings = config.options_mut();
        settings.sql_parser.enable_ident_normalization = false;
        settings.sql_parser.map_string_types_to_utf8view = false;
        settings.sql_parser.collect_spans = true;
        settings.execution.time_zone = Some(crate::types::ZONE.to_owned());
        settings
            .execution
            .use_row_number_estimates_to_optimize_partitioning = true;
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(options.memory_bytes, 1.0);
        let mut builder = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime.build_arc()?)
            .with_default_features()
            .with_physical_optimizer_rules(rules(options.use_statistics))
            .with_optimizer_rules(logical_rules())
            .with_relation_planners(vec![Arc::new(joins::JoinRelations)])
            .with_query_planner(Arc::new(NodePlanner));
        builder
            .scalar_functions()
            .get_or_insert_default()
            .extend(functions::scalar());
        builder
            .aggregate_functions()
            .get_or_insert_default()
            .extend(functions::aggregate());
        let mut session = builder.build();
        for rule in functions::analyzer_rules() {
            session.add_analyzer_rule(rule);
        }
        let plain = Arc::new(session.clone());
        let reader = options.files.then(|| Arc::clone(&plain));
        Ok(Self {
            session,
            reader,
            views: Arc::new(ViewPlanner(plain)),
            database: database.clone(),
            files: Files::default(),
        })
    }

    /// The session that reads files of rows; `None` if statements may not read files.
    pub(crate) fn reader(&self) -> Option<&Arc<SessionState>> {
        self.reader.as_ref()
    }

    /// Begins a statement on the tables of the previous one; only the current time is updated.
    pub(crate) fn begin_again(&mut self) {
        let options = Arc::clone(self.session.config_options());
        self.session
            .execution_props_mut()
            .mark_start_execution(options);
    }

    /// Begins a statement on these tables.
    pub(crate) fn begin(&mut self, tables: &Tables) {
        self.begin_again();
        let tables = self.complete(tables.clone());
        self.session.register_catalog_list(Arc::new(tables));
    }

    /// Adds views, attached files and the tables that describe the database to the tables.
    pub(crate) fn complete(&self, tables: Tables) -> Tables {
        self.with_views(Tables {
            database: Some(self.database.clone()),
            attached: Attached::new(&self.files),
            ..tables
        })
    }

    /// Adds views to the tables.
    pub(crate) fn with_views(&self, tables: Tables) -> Tables {
        let planner: Arc<dyn PlanQuery> = Arc::<ViewPlanner>::clone(&self.views);
        let views = Views::planned_by(planner);
        Tables { views, ..tables }
    }

    /// The attached files.
    pub(crate) fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    /// Plans a statement on the tables passed to the last call of `begin`.
    pub(crate) async fn logical(&self, statement: Statement) -> Result<LogicalPlan> {
        read_plan(&self.session, statement).await
    }

    /// Plans a change of rows on the tables passed to the last call of `begin`; the plan returns the rows to insert,
    /// update or delete.
    pub(crate) async fn change(&self, statement: Statement) -> Result<DmlStatement> {
        match self.session.statement_to_plan(statement).await? {
            LogicalPlan::Dml(plan) if source_as_provider(&plan.target)?.is::<ReadOnly>() => {
                Err(files::read_only(&plan.table_name))
            }
            LogicalPlan::Dml(plan) => Ok(plan),
            other => Err(Error::new(
                ErrorKind::Syntax,
                format!("not supported: {}", other.display()),
            )),
        }
    }

    /// The session state with which plans are created.
    pub(crate) fn session(&self) -> &SessionState {
        &self.session
    }

    /// Optimizes a plan.
    pub(crate) fn optimize(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        Ok(self.session.optimize(plan)?)
    }

    /// The physical plan of an optimized logical plan.
    pub(crate) async fn nodes(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = self.session.query_planner();
        Ok(planner.create_physical_plan(plan, &self.session).await?)
    }

    /// Optimizes a logical plan and returns its physical plan.
    pub(crate) async fn physical(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.session.create_physical_plan(plan).await?)
    }

    /// The settings and the memory limit with which a plan runs. It has no functions, because nodes contain their
    /// functions.
    pub(crate) fn context(&self) -> Arc<TaskContext> {
        Arc::new(TaskContext::new(
            None,
            self.session.session_id().to_owned(),
            self.session.config().clone(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            Arc::clone(self.session.runtime_env()),
        ))
    }
}
