import { Badge, Group, SegmentedControl, Switch, Text, Tooltip } from '@mantine/core';
import { memo, useCallback, useEffect, useState } from 'react';
import type { Direction, LiveCommand } from '@/api/types';
import { endsOf, linkTitle } from '@/format/links';
import { rate } from '@/format/units';
import { spanColors } from '@/theme/spanColors';
import { describeConditions, utilisation } from '@/run/data/linkUse';
import type { DirectionData } from '@/run/data/runData';
import type { LinkView } from '@/run/data/snapshot';
import { LinkConditions } from './LinkConditions';
import { RateControl } from './RateControl';
import { usePending } from './usePending';
import { useRow } from './useRow';
import classes from './live.module.css';

interface Props {
  runId: number;
  link: LinkView;
  refusals: number;
  enabled: boolean;
  chosen: boolean;
  /** Whether the focus moves here. */
  focused: boolean;
  onChoose: () => void;
}

/** One link: set and measured rate per direction, controls of the rate, a switch for the link. */
export function LinkRow({ runId, link, refusals, enabled, chosen, focused, onChoose }: Props) {
  const [direction, setDirection] = useState<Direction>('both');
  const [draft, setDraft] = useState<number | null>(null);
  const [pending, send] = usePending(runId, link.changes, refusals);
  const row = useRow(chosen, focused, onChoose);
  const { name } = link;
  const setRate = useCallback(
    (bit_per_s: number) => {
      setDraft(bit_per_s);
      send({ kind: 'set_rate', link: name, bit_per_s, direction });
    },
    [send, name, direction],
  );
  useEffect(() => {
    if (!pending) setDraft(null);
  }, [pending]);
  const side = direction === 'backward' ? link.backward : link.forward;
  const conditions = describeConditions(link);
  return (
    <div
      {...row}
      className={classes.control}
      data-chosen={chosen || undefined}
      data-testid={`link-row-${link.name}`}
    >
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text size="sm" fw={600} truncate className={classes.linkName}>
          {linkTitle(endsOf(link.name) ?? link)}
        </Text>
        <Group gap={8} wrap="nowrap">
          {(pending || draft !== null) && (
            <Badge
              size="sm"
              variant="light"
              color="yellow"
              tt="none"
              data-testid={`link-pending-${link.name}`}
            >
              pending
            </Badge>
          )}
          <Cut link={link.name} up={link.up} enabled={enabled && !pending} send={send} />
        </Group>
      </Group>
      <Use
        label={`${link.a} → ${link.b}`}
        side={link.forward}
        up={link.up}
        testId={`link-forward-${link.name}`}
      />
      <Use
        label={`${link.b} → ${link.a}`}
        side={link.backward}
        up={link.up}
        testId={`link-backward-${link.name}`}
      />
      {conditions && (
        <Text size="xs" c="dimmed" mt={2} data-testid={`link-conditions-${link.name}`}>
          {conditions}
        </Text>
      )}
      <RateControl
        key={refusals}
        link={link.name}
        bit_per_s={side.set_bit_per_s}
        draft={draft}
        enabled={enabled && link.up}
        named={chosen}
        onDraft={setDraft}
        onSet={setRate}
      />
      {chosen && (
        <>
          <SegmentedControl
            size="xs"
            fullWidth
            mt={6}
            value={direction}
            onChange={(value) => setDirection(value as Direction)}
            disabled={!enabled}
            data-testid={`link-direction-${link.name}`}
            data={[
              { value: 'both', label: 'both ways' },
              { value: 'forward', label: `${link.a} → ${link.b}` },
              { value: 'backward', label: `${link.b} → ${link.a}` },
            ]}
          />
          <LinkConditions
            key={refusals}
            link={link.name}
            direction={direction}
            delay_s={side.delay_s}
            loss_frac={side.loss_frac}
            jitter_s={link.jitter_s}
            enabled={enabled && link.up && !pending}
            send={send}
          />
        </>
      )}
    </div>
  );
}

function Use({
  label,
  side,
  up,
  testId,
}: {
  label: string;
  side: DirectionData;
  up: boolean;
  testId: string;
}) {
  return (
    <div className={classes.use} data-testid={testId}>
      <span className={classes.useLabel}>{label}</span>
      <div className={classes.useBar}>
        <div style={{ width: `${utilisation(side) * 100}%`, background: spanColors.send }} />
      </div>
      <span className={classes.useNow}>{up ? rate(side.use_bit_per_s) : 'down'}</span>
      <Rates
        set_bit_per_s={side.set_bit_per_s}
        measured_bit_per_s={side.measured_bit_per_s}
        testId={testId}
      />
    </div>
  );
}

interface RatesProps {
  set_bit_per_s: number;
  measured_bit_per_s: number | null;
  testId: string;
}

const Rates = memo(function Rates({ set_bit_per_s, measured_bit_per_s, testId }: RatesProps) {
  return (
    <Tooltip label="the rate that is set, and the rate that was measured on the link">
      <span className={classes.useSet}>
        set {rate(set_bit_per_s)},{' '}
        <span data-testid={`${testId}-measured`}>
          {measured_bit_per_s === null ? 'not measured yet' : `measured ${rate(measured_bit_per_s)}`}
        </span>
      </span>
    </Tooltip>
  );
});

interface CutProps {
  link: string;
  up: boolean;
  enabled: boolean;
  send: (command: LiveCommand) => void;
}

const Cut = memo(function Cut({ link, up, enabled, send }: CutProps) {
  return (
    <Tooltip label={up ? 'Cut this link' : 'Restore this link'}>
      <Switch
        size="xs"
        checked={up}
        disabled={!enabled}
        aria-label={`Link ${link} is up`}
        data-testid={`link-up-${link}`}
        withThumbIndicator={false}
        onChange={(event) => send({ kind: event.currentTarget.checked ? 'link_up' : 'link_down', link })}
      />
    </Tooltip>
  );
});
