import { SegmentedControl, Text } from '@mantine/core';
import { IconBolt } from '@tabler/icons-react';
import { useEffect, useRef, useState } from 'react';
import { Panel } from '@/components/Panel';
import type { Snapshot } from '@/run/data/snapshot';
import classes from './live.module.css';

/** Rows in the page: a long run has thousands, and every picture of it would lay them all out. */
const SHOWN = 300;

/** The run's log in order; changes of the cluster are highlighted. */
export function EventLog({ picture }: { picture: Snapshot }) {
  const [which, setWhich] = useState<'all' | 'injections'>('all');
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const all = which === 'all' ? picture.log : picture.log.filter((entry) => entry.level === 'injection');
  const entries = all.slice(-SHOWN);
  const count = entries.at(-1)?.key ?? 0;
  useEffect(() => {
    if (count > 0 && atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [count]);
  return (
    <Panel
      title="Events"
      testId="event-log"
      flush
      about={
        picture.droppedSpans > 0
          ? `the oldest ${picture.droppedSpans.toLocaleString('en')} activities are only in the stored recording, and hatched above`
          : undefined
      }
      extra={
        <SegmentedControl
          size="xs"
          value={which}
          onChange={(value) => setWhich(value as 'all' | 'injections')}
          data-testid="log-which"
          data={[
            { value: 'all', label: 'All' },
            { value: 'injections', label: 'Changes' },
          ]}
        />
      }
    >
      <div
        ref={box}
        className={classes.log}
        role="log"
        tabIndex={0}
        aria-label="Events of the run"
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          atEnd.current = scrollHeight - scrollTop - clientHeight < 24;
        }}
      >
        {count === 0 && (
          <Text size="sm" c="dimmed" p="md">
            Nothing yet.
          </Text>
        )}
        {all.length > SHOWN && (
          <Text size="xs" c="dimmed" px="md" py={4}>
            The newest {SHOWN} of {all.length.toLocaleString('en')} lines.
          </Text>
        )}
        {entries.map((entry) => (
          <div
            key={entry.key}
            className={classes.entry}
            data-level={entry.level}
            data-testid={`log-${entry.level}`}
          >
            <span className={classes.time}>
              {entry.time_s === null ? '' : `${entry.time_s.toFixed(3)} s`}
            </span>
            <span className={classes.level}>
              {entry.level === 'injection' ? <IconBolt size={13} /> : entry.level}
            </span>
            <span>{entry.text}</span>
          </div>
        ))}
      </div>
    </Panel>
  );
}
