"""The public names of the package, each with its module: `routing.__getattr__` reads this list."""

from routing.cases.compared_tables import Scripts as Scripts
from routing.cases.compared_tables import TableVersions as TableVersions
from routing.cases.question_source import open_tables as open_tables
from routing.cases.questions import DescribedMessage as DescribedMessage
from routing.cases.questions import StoredMessage as StoredMessage
from routing.config import Config as Config
from routing.config import load as _load
from routing.delta.spark_tables import table_names as table_names
from routing.errors import ContractError as ContractError
from routing.errors import RoutingError as RoutingError
from routing.errors import StorageError as StorageError
from routing.lint.custom_rules import Configuration as Configuration
from routing.lint.custom_rules import custom_rule as _custom_rule
from routing.messages.dialog_hash import register as _register
from routing.runs.following import resolve_stream as resolve_stream
from routing.runs.local_runs import resolve_local as resolve_local
from routing.runs.pipeline import Resolution as Resolution
from routing.runs.pipeline import current_routes as current_routes
from routing.runs.pipeline import read_run as read_run
from routing.runs.pipeline import resolve as resolve
from routing.runs.pipeline import run as run
from routing.runs.running import Run as Run
from routing.runs.spark_outputs import RankedCandidates as RankedCandidates
from routing.runs.spark_outputs import candidates as candidates
from routing.runs.spark_outputs import trace_all as trace_all
from routing.sessions.session import start_of_config as _start_of_config
from routing.terms import MatchingStep as MatchingStep
from routing.terms import Outcome as Outcome
from routing.terms import Reason as Reason
from routing.views.diff.diffing import Diff as Diff
from routing.views.diff.diffing import diff as diff
from routing.views.explain.explaining import explain as explain
from routing.views.messages.message_filter import ask as ask
from routing.views.messages.message_list import list_messages as list_messages
from routing.views.page import pictures as pictures
from routing.views.page.facts import MessageFlow as MessageFlow
from routing.views.page.facts import Report as Report
from routing.views.page.page_file import write_page as write_page
from routing.views.reconcile.reconciling import Reconciliation as Reconciliation
from routing.views.reconcile.reconciling import reconcile as reconcile
from routing.views.report.reporting import report as report
from routing.views.result_text import text_of as text_of
from routing.views.trace.tracing import trace as trace

# A type checker takes an import under another name for a private one.
load_config = _load
finding = _custom_rule
register_dialog_hash = _register
spark_session = _start_of_config
