import { ActionIcon, NumberInput, Select } from '@mantine/core';
import { IconTrash } from '@tabler/icons-react';
import type { Change, ClusterSpec, Direction } from '@/api/types';
import {
  KINDS,
  subjectOf,
  valueOf,
  withKind,
  withSubject,
  withValue,
  type Kind,
} from '@/run/scenario/changes';
import classes from './recorder.module.css';
import { linkChoices } from '@/format/links';

interface Props {
  change: Change;
  cluster: ClusterSpec;
  onChange: (change: Change) => void;
  onRemove: () => void;
}

/** One change of a scenario: when, what, of which link or device, and how much. */
export function ChangeRow({ change, cluster, onChange, onRemove }: Props) {
  const kind = KINDS.find(({ value }) => value === change.kind)!;
  const subjects =
    kind.subject === 'link' ? linkChoices(cluster.links) : cluster.devices.map(({ name }) => name);
  const value = valueOf(change);
  return (
    <div className={classes.row} data-testid="recorder-row">
      <NumberInput
        size="xs"
        aria-label="At virtual time"
        suffix=" s"
        value={Number(change.at_s.toFixed(4))}
        min={0}
        decimalScale={4}
        hideControls
        onChange={(at_s) => typeof at_s === 'number' && onChange({ ...change, at_s })}
      />
      <Select
        size="xs"
        aria-label="Link or device"
        data={subjects}
        value={subjectOf(change)}
        allowDeselect={false}
        onChange={(name) => name && onChange(withSubject(change, name))}
      />
      <Select
        size="xs"
        aria-label="What changes"
        data={KINDS.map((one) => ({ value: one.value, label: `${one.subject}: ${one.label}` }))}
        value={change.kind}
        allowDeselect={false}
        onChange={(next) => next && onChange(withKind(change, next as Kind, cluster))}
      />
      {value === null ? (
        <span />
      ) : (
        <NumberInput
          size="xs"
          aria-label="Value"
          suffix={` ${kind.unit}`}
          value={value}
          min={0}
          hideControls
          onChange={(next) => typeof next === 'number' && onChange(withValue(change, next))}
        />
      )}
      {'direction' in change ? (
        <Select
          size="xs"
          aria-label="Direction"
          data={['both', 'forward', 'backward']}
          value={change.direction}
          allowDeselect={false}
          onChange={(next) => next && onChange({ ...change, direction: next as Direction })}
        />
      ) : (
        <span />
      )}
      <ActionIcon variant="subtle" color="gray" aria-label="Remove this change" onClick={onRemove}>
        <IconTrash size={15} />
      </ActionIcon>
    </div>
  );
}
