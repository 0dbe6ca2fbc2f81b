"""The read-only models and their admin."""

import uuid

from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import TestCase, TransactionTestCase
from django.test.utils import CaptureQueriesContext

from forge.integrations.django import app
from forge.integrations.django.models import AuditEvent, DeadLetter, Job, ReadOnly, Worker
from orders.jobs import confirm, remind
from orders.models import Order
from orders.tests.kit import job_rows, until, working

JOBS = "/admin/forge/job/"
LETTERS = "/admin/forge/deadletter/"


class Models(TestCase):
    def test_models_read_and_refuse_to_write(self) -> None:
        job = app.sync.dispatch(confirm, {"order": 1}, tags=["a", "b"], priority="high")
        found = Job.objects.get(pk=job.id)

        assert (found.input, found.tags, found.get_priority_display()) == (
            {"order": 1},
            ["a", "b"],
            "high",
        )
        assert Job.objects.filter(input__order=1, status="pending").count() == 1
        for write in (
            found.save,
            found.delete,
            Job.objects.create,
            Job.objects.all().delete,
            lambda: Job.objects.update(status="completed"),
            lambda: Job.objects.bulk_create([]),
        ):
            with self.assertRaises(ReadOnly):
                write()

    def test_every_column_of_a_model_is_a_column_of_its_table(self) -> None:
        for model in (Job, DeadLetter, Worker, AuditEvent):
            list(model.objects.all()[:1])


class Reading(TestCase):
    def setUp(self) -> None:
        self.client.force_login(User.objects.create_superuser("root"))

    def test_lists_filter_by_status_type_and_priority(self) -> None:
        one = app.sync.dispatch(confirm, {"order": 1}, priority="high")
        two = app.sync.dispatch(remind, {"order": 2})

        def shown(query: str) -> list[bool]:
            page = self.client.get(JOBS + query).content.decode()
            return [f"{job.id}/change/" in page for job in (one, two)]

        assert shown("") == [True, True]
        assert shown("?job_type=confirm") == [True, False]
        assert shown("?priority__exact=75") == [True, False]
        assert shown("?status__exact=completed") == [False, False]

    def test_jobs_are_found_by_the_ids_that_have_an_index(self) -> None:
        correlation = uuid.uuid4()
        job = app.sync.dispatch(confirm, {"order": 1}, correlation_id=correlation)
        keyed = app.sync.dispatch(confirm, {"order": 2}, idempotency_key="the key")
        other = app.sync.dispatch(confirm, {"order": 3})

        def found(text: str) -> set[str]:
            page = self.client.get(JOBS, {"q": text}).content.decode()
            ids = (job.id, keyed.id, other.id)
            return {str(id) for id in ids if f"{id}/change/" in page}

        assert found(str(job.id)) == found(str(correlation)) == {str(job.id)}
        assert found("the key") == {str(keyed.id)}
        assert found("nonsense") == found(str(uuid.uuid4())) == set()

    def test_a_job_is_shown_with_its_attempts_and_without_its_secrets(self) -> None:
        job = app.sync.dispatch(confirm, {"order": 1, "password": "hunter2-of-ann"})
        with connection.cursor() as cursor:
            cursor.execute(
                "insert into forge_attempts (job_id, lease, attempt, outcome, exception, error) "
                "values (%s, 1, 1, 'retry', 'shop.Late', 'refused hunter2-of-ann <b>')",
                [job.id],
            )

        page = self.client.get(f"{JOBS}{job.id}/change/").content.decode()

        assert "shop.Late" in page
        assert "&lt;b&gt;" in page
        assert "hunter2" not in page
        assert 'name="_save"' not in page

    def test_a_large_table_is_counted_to_a_limit_and_without_payloads(self) -> None:
        app.sync.dispatch(confirm, {"order": 1})

        with CaptureQueriesContext(connection) as queries:
            self.client.get(JOBS)

        on_jobs = [one["sql"] for one in queries if "forge_jobs" in one["sql"]]
        (count, page) = on_jobs
        assert "COUNT(*)" in count
        assert "LIMIT 10000)" in count
        assert '"forge_jobs"."input"' not in page

    def test_every_list_opens_and_nothing_can_be_added_or_deleted(self) -> None:
        for name in ("job", "deadletter", "schedule", "worker"):
            assert self.client.get(f"/admin/forge/{name}/").status_code == 200, name
            assert self.client.get(f"/admin/forge/{name}/add/").status_code == 403, name

    def test_a_user_with_view_rights_has_no_actions(self) -> None:
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.set(Permission.objects.filter(codename="view_job"))
        self.client.force_login(viewer)
        job = app.sync.dispatch(confirm, {"order": 1})

        page = self.client.get(JOBS).content.decode()
        self.client.post(JOBS, {"action": "cancel", "_selected_action": [str(job.id)]})

        assert str(job.id) in page
        assert "Cancel the selected jobs" not in page
        assert len(job_rows()) == 1


class Acting(TransactionTestCase):
    def setUp(self) -> None:
        self.client.force_login(User.objects.create_superuser("root"))

    def tearDown(self) -> None:
        app.sync.close()

    def test_actions_on_jobs_are_requests_in_the_audit(self) -> None:
        later = app.sync.dispatch(confirm, {"order": 1}, delay="1h")
        order = Order.objects.create(customer="Ada")
        done = app.sync.dispatch(confirm, {"order": order.pk})
        with working():
            done.result(timeout=30)
            self._act(JOBS, "cancel", later.id)
            until(lambda: Job.objects.get(pk=later.id).status == "cancelled")
        self._act(JOBS, "run_again", done.id)

        again = Job.objects.get(retry_of=done.id)
        assert again.input == {"order": order.pk}
        assert set(AuditEvent.objects.values_list("actor", "job_id")) == {
            ("root", later.id),
            ("root", done.id),
        }
        page = self.client.get(f"{JOBS}{later.id}/change/").content.decode()
        assert "root" in page

    def test_dead_letters_are_reviewed_with_notes(self) -> None:
        with working():
            jobs = [app.sync.dispatch(confirm, {"order": 404 + n}) for n in range(2)]
            with connection.cursor() as cursor:
                cursor.execute("update forge_jobs set max_attempts = 1 where status = 'pending'")
            until(lambda: DeadLetter.objects.count() == len(jobs))
        one, two = DeadLetter.objects.order_by("dlq_id")

        asked = self._act(LETTERS, "reprocess", one.pk)
        refused = self._act(LETTERS, "discard", two.pk, notes=" ")
        self._act(LETTERS, "reprocess", one.pk, notes="the order exists now")
        self._act(LETTERS, "discard", two.pk, notes="a mistake")

        assert "Notes for the audit" in asked
        assert "Write why" in refused
        letters = DeadLetter.objects.order_by("dlq_id").values_list(
            "status", "reviewed_by", "notes"
        )
        assert list(letters) == [
            ("reprocessed", "root", "the order exists now"),
            ("discarded", "root", "a mistake"),
        ]
        assert Job.objects.filter(retry_of=one.job_id).exists()
        assert AuditEvent.objects.filter(actor="root", dlq_id=two.pk).exists()

    def _act(self, path: str, action: str, id: object, **fields: str) -> str:
        data = {"action": action, "_selected_action": [str(id)], **fields}
        return self.client.post(path, data, follow=True).content.decode()
