"""Nodes, which are people's own boards: tokens with which they join, what they say, and their devices.

A token is shown once. One that nobody has used lapses after a day, another some time after its node was last
seen; to revoke it is to remove the node.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.http import Http404
from django.utils import timezone
from ninja import Router, Schema
from ninja.responses import Status
from pydantic import Field

import topologies
from engine.domain.cluster import ClusterSpec, DeviceSpec
from engine.domain.errors import SpecError
from engine.domain.node_messages import (
    MOST_CLOCK_S,
    SILENT_S,
    NodeBeat,
    NodeHello,
    NodeMeasured,
    NodeWelcome,
)
from engine.domain.units import human_s
from engine.domain.values import Name
from webapp.accounts import audit
from webapp.accounts.access import UserRequest, operator
from webapp.accounts.rights import Rights, require
from webapp.accounts.tokens import SECRET_BYTES, digest_of
from webapp.base.errors import Conflict
from webapp.base.files import read_machine
from webapp.clusters.models import Node

router = Router(tags=["nodes"])

PREFIX = "node_"
MOST_NODES = 100
UNUSED_KEPT = timedelta(days=1)
UNSEEN_KEPT = timedelta(days=90)
GONE = "Its token was revoked, or another process has joined with it: each board needs a token of its own."


class NodeOut(Schema):
    """A board that may join: what it last said of itself, and its device in the palette."""

    name: str
    owner: str
    locked: str | None = Field(description="Why you may not revoke it; null if you may.")
    connected: bool
    seen_at: datetime | None
    valid_until: datetime = Field(description="When its token lapses if it is not seen until then.")
    hello: NodeHello | None = Field(description="Null before it has joined for the first time.")
    beat: NodeBeat | None
    device: topologies.DevicePreset | None = Field(description="Null until it is measured.")
    caution: str = Field(description="What is to be said beside its rates, or empty.")


class NodeIn(Schema):
    name: Name


class NewNode(Schema):
    name: str
    token: str = Field(description="With it the board joins. It is not shown again.")


# Over HTTP ----------------------------------------------------------------------------------------
@router.get("", response=list[NodeOut])
def list_nodes(request: UserRequest) -> list[NodeOut]:
    rights = Rights.of(request.auth)
    return [_out(node, rights) for node in Node.objects.select_related("owner").defer("profile")]


@router.post("", response={201: NewNode}, auth=operator)
def add_node(request: UserRequest, body: NodeIn) -> Status[NewNode]:
    """A token with which one board joins. 409 for a name that another device of the palette has."""
    token = add(body.name, request.auth)
    audit.note(request.auth, "made a token", f"board {body.name}")
    return Status(201, NewNode(name=body.name, token=token))


@router.delete("/{name}", response={204: None}, auth=operator)
def revoke_node(request: UserRequest, name: str) -> Status[None]:
    """Revoke a board's token and take its device out of the palette. Clusters that use it keep its row."""
    node = Node.objects.select_related("owner").filter(name=name).first()
    if node is None:
        raise Http404(f"There is no board {name[:40]}")
    require(request.auth, node.owner, f"Board {name}")
    node.delete()
    audit.note(request.auth, "revoked a token", f"board {name}")
    return Status(204, None)


def _out(node: Node, rights: Rights) -> NodeOut:
    return NodeOut(
        name=node.name,
        owner=node.owner.username if node.owner else "",
        locked=rights.locked(node.owner, f"Board {node.name}"),
        connected=is_connected(node),
        seen_at=node.seen_at,
        valid_until=valid_until(node),
        hello=NodeHello.model_validate(node.hello) if node.hello else None,
        beat=NodeBeat.model_validate(node.beat) if node.beat else None,
        device=_device(node),
        caution=node.caution,
    )


# Tokens -------------------------------------------------------------------------------------------
def add(name: str, owner: User) -> str:
    """A new node and its token, which nobody can read again. Raises `Conflict`."""
    taken = name in {preset.name for preset in topologies.presets()}
    if taken or (settings.MACHINES_DIR / f"{name}.json").exists():
        raise Conflict(f"Another device of the palette is called {name}: choose another name.")
    if Node.objects.count() >= MOST_NODES:
        raise Conflict(f"There are {MOST_NODES} boards, the most that a server has: revoke one first.")
    token = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    try:
        Node.objects.create(name=name, owner=owner, digest=digest_of(token))
    except IntegrityError as error:
        raise Conflict(f"There is a board {name}: revoke it first, or choose another name.") from error
    return token


def holder(token: str) -> Node:
    """The node that may join with this token. Raises `SpecError`."""
    node = Node.objects.defer("profile").filter(digest=digest_of(token)).first()
    if node is None:
        raise SpecError(
            "The server refuses the token: it is unknown or was revoked: add the board on the page Machines."
        )
    if (until := valid_until(node)) < timezone.now():
        raise SpecError(
            f"The token of {node.name} lapsed on {until:%Y-%m-%d}: revoke the board on the page Machines, "
            "and add it again."
        )
    return node


def valid_until(node: Node) -> datetime:
    return node.created_at + UNUSED_KEPT if node.seen_at is None else node.seen_at + UNSEEN_KEPT


def is_connected(node: Node) -> bool:
    recent = node.seen_at is not None and node.seen_at > timezone.now() - timedelta(seconds=SILENT_S)
    return recent and bool(node.connection)


# What nodes say -----------------------------------------------------------------------------------
def heard(
    node: Node, connection: str, came_from: str, message: NodeHello | NodeBeat | NodeMeasured
) -> NodeWelcome | None:
    """Keep what a node has said on the connection of this name, which came from this address; the answer, if
    there is one. Raises `SpecError` for what is wrong, and on a connection that is no longer the node's.
    """
    mine = Node.objects.filter(pk=node.pk)
    now = timezone.now()
    if isinstance(message, NodeHello):
        _check_clock(message, time.time())
        hello = message.model_dump(mode="json")
        joined = {"connection": connection, "came_from": came_from, "seen_at": now}
        if not mine.update(hello=hello, beat=None, **joined):
            raise SpecError(GONE)
        return NodeWelcome(name=node.name)
    said = {"beat": message.model_dump(mode="json")} if isinstance(message, NodeBeat) else _measured(message)
    if not mine.filter(connection=connection).update(seen_at=now, **said):
        raise SpecError(GONE)
    return None


def hung_up(node: Node, connection: str) -> None:
    """Note that this connection is over, if it is still the node's."""
    Node.objects.filter(pk=node.pk, connection=connection).update(connection="")


def _check_clock(hello: NodeHello, now_s: float) -> None:
    off_s = hello.clock_s - now_s
    if abs(off_s) > MOST_CLOCK_S:
        raise SpecError(
            f"The clock of {hello.host} is {human_s(abs(off_s))} {'ahead of' if off_s > 0 else 'behind'} the "
            f"server's, and may be {human_s(MOST_CLOCK_S)} off: set it, as with timedatectl set-ntp true."
        )


def _measured(message: NodeMeasured) -> dict[str, object]:
    found = read_machine(message.calibration, "calibration")
    return {
        "device": found.device.model_dump(mode="json", exclude_defaults=True),
        "profile": found.profile.model_dump(mode="json", exclude_defaults=True),
        "caution": found.profile.caution,
    }


# The palette --------------------------------------------------------------------------------------
def devices() -> Sequence[topologies.DevicePreset]:
    """The devices of all nodes that are measured, connected or not."""
    found = (_device(node) for node in Node.objects.defer("profile"))
    return [device for device in found if device]


def _device(node: Node) -> topologies.DevicePreset | None:
    if node.device is None:
        return None
    row = node.device | {
        "name": node.name,
        "node": node.name,
        "title": f"{node.name}: {node.device.get('title', '')}",
    }
    device: topologies.DevicePreset = topologies.DevicePreset.model_validate(row)
    return device


# Runs on them -------------------------------------------------------------------------------------
def boards_of(cluster: ClusterSpec, must_be_there: bool = True) -> list[Node]:
    """The boards that devices of a cluster are, in their order. Raises `SpecError` for one that is
    unknown, has fewer cores than it is devices or, if they `must_be_there`, is away.
    """
    known = {node.name: node for node in Node.objects.defer("profile")}
    bound = [device for device in cluster.devices if device.node]
    found = [_known(device, known.get(device.node), must_be_there) for device in bound]
    for name, devices in Counter(node.name for node in found).items():
        cores = (known[name].hello or {}).get("cores", devices)
        if devices > cores:
            why = (
                f"{devices} devices are bound to the board {name}, which has {cores} "
                f"core{'s' if cores > 1 else ''}, one for each device"
            )
            raise SpecError(f"{why}: bind fewer to it.", [("cluster", why)])
    return found


def known() -> set[str]:
    """The names of all boards whose tokens are not revoked."""
    return set(Node.objects.values_list("name", flat=True))


def hold(names: Collection[str]) -> None:
    """Let others that come here for one of these boards wait until the end of the transaction. SQLite lets
    them wait from the start of theirs.
    """
    list(Node.objects.select_for_update().filter(name__in=names).order_by("pk").values_list("pk"))


def connected() -> set[str]:
    """The names of all boards that are there."""
    return {node.name for node in Node.objects.defer("profile") if is_connected(node)}


def _known(device: DeviceSpec, node: Node | None, must_be_there: bool) -> Node:
    if node is None:
        why = f"device {device.name} is bound to the board {device.node}, which this server does not know"
        raise SpecError(f"{why}: add it on the page Machines.", [("cluster", why)])
    if must_be_there and not is_connected(node):
        seen = f"was last seen at {node.seen_at:%Y-%m-%d %H:%M} UTC" if node.seen_at else "has never joined"
        why = f"the board {node.name} of device {device.name} is away: it {seen}"
        raise SpecError(f"{why}: start edgeloom node there.", [("cluster", why)])
    return node
