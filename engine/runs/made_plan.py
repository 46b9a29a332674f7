"""The plan of a run from when somebody asks for the run: made once, and checked by whoever carries it out."""

from __future__ import annotations

from engine.domain.errors import PlanError
from engine.domain.plan import Plan
from engine.domain.spec import RunSpec, digest_of, spec_digest, without_record
from engine.domain.values import Value


class MadePlan(Value):
    """A run's plan, made when somebody asked for the run.

    `digest` is of the run and the plan, 64 hexadecimal digits (SHA-256); `code` is the version of the code
    that made it. Without a `plan`, `anew` says in a sentence why one is made anew.
    """

    plan: Plan | None = None
    digest: str = ""
    code: str = ""
    anew: str = ""

    def for_code(self, code: str) -> MadePlan:
        """What a worker whose code has the version `code` takes: it makes plans of other versions anew."""
        if self.code == code:
            return self
        maker = f"version {self.code}" if self.code else "an older version"
        return MadePlan(
            anew=f"The plan was made anew by version {code} of the code: {maker} had made it when somebody "
            "asked for the run."
        )

    def checked(self, spec: RunSpec) -> Plan | None:
        """The plan; raises `PlanError` if it is not the one that was made of `spec`."""
        if self.plan is not None and (expected := plan_digest(spec, self.plan)) != self.digest:
            raise PlanError(
                f"{spec.strategy} on {spec.cluster.name}: the plan that was kept with the run is not the one "
                f"that was made of it: the digest of the two is {expected[:12]}, expected "
                f"{self.digest[:12] or 'one'}. Ask for the run again."
            )
        return self.plan


def made_plan(spec: RunSpec, plan: Plan, code: str = "") -> MadePlan:
    """`plan`, made of `spec` by the code of this version."""
    return MadePlan(plan=plan, digest=plan_digest(spec, plan), code=code)


def plan_digest(spec: RunSpec, plan: Plan) -> str:
    """Hash of a run and its plan. The times of a host, and what a service has answered, are not of the run as
    it is planned.
    """
    planned = without_record(spec).model_copy(update={"profile": None})
    return digest_of([spec_digest(planned), plan.model_dump(mode="json")])
