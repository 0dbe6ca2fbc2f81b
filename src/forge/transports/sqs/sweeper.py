"""Sweeping: jobs that wait and that nobody was told of get their row in the outbox."""

from forge.core.lanes import BEGINNING
from forge.store import jobs, outbox
from forge.store.jobs import Lane, Place
from forge.store.link import Link
from forge.transports.sqs.routes import Routes

# Rows looked at in one step, and steps in one round: a long line is walked in several rounds.
STEP = 1000
MOST_STEPS = 20


class Sweeper:
    """Walks the lanes by their index, and begins anew where each ends.

    Jobs leave their row in the outbox themselves. What has none was dispatched while the outbox was
    off, or somebody emptied it.
    """

    interval = 5.0
    # So long a job has been due before it counts as forgotten.
    patience = 5.0

    def __init__(self, link: Link, routes: Routes) -> None:
        self._link = link
        self._routes = routes
        self._places: dict[int, Place] = {}

    async def sweep(self) -> int:
        """Walk on; return how many jobs were found that nobody was told of."""
        found = await self._link.run(jobs.survey())
        mine = [lane for lane in found if self._is_told(lane)]
        known = {lane.lane: Place(lane.lane, *BEGINNING) for lane in mine}
        self._places = known | {
            lane: place for lane, place in self._places.items() if lane in known
        }
        share = max(MOST_STEPS // max(len(known), 1), 1)
        return sum([await self._walk(place, share) for place in list(self._places.values())])

    async def _walk(self, place: Place, steps: int) -> int:
        """Go some steps along one lane."""
        told, ahead = 0, place
        for _ in range(steps):
            count, following = await self._step(ahead)
            told += count
            if following is None:
                break
            ahead = following
        return told

    async def _step(self, place: Place) -> tuple[int, Place | None]:
        """Look at the next jobs of a lane; where it goes on after them, if it does."""
        row = await self._link.run(outbox.sweep(place, STEP, self.patience))
        if row["looked_at"] < STEP:
            self._places[place.lane] = Place(place.lane, *BEGINNING)
            return row["told"], None
        self._places[place.lane] = Place(place.lane, row["at"], row["id"])
        return row["told"], self._places[place.lane]

    def _is_told(self, lane: Lane) -> bool:
        return lane.due_in <= 0 and self._routes.queue_of(lane) is not None
