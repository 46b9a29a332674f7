import { Badge, Button, Card, Group, Loader, Text } from '@mantine/core';
import { useState } from 'react';
import { sentence } from '@/api/client';
import type { DeviceReason, RunReport, RunRequest } from '@/api/types';
import { seconds } from '@/format/units';
import { useWhy } from '@/run/request/usePrediction';
import classes from './newRun.module.css';

/** Layers × devices up to which the reasons are asked for without a click. */
const SMALL = 128;
const COLORS: Record<DeviceReason['binding'], string> = {
  memory: 'red',
  compute: 'blue',
  load: 'grape',
  link: 'orange',
  idle: 'gray',
  none: 'gray',
};

interface Props {
  request: RunRequest | null;
  report: RunReport | undefined;
}

/** What binds each device under the predicted plan, found by trying one unit more and one less. */
export function WhyPlan({ request, report }: Props) {
  const [wanted, setWanted] = useState(false);
  const size = report ? report.spec.model.num_layers * report.spec.cluster.devices.length : Infinity;
  const asks = wanted || size <= SMALL;
  const why = useWhy(asks && report ? request : null);
  if (!report) return null;
  return (
    <Card padding="md" data-testid="why" data-state={why.stale ? 'waiting' : why.error ? 'error' : 'ready'}>
      <Group justify="space-between" mb={6} h={22}>
        <span className="overline">Why this plan</span>
        {why.stale && <Loader size="xs" />}
      </Group>
      {!asks ? (
        <Button variant="default" size="xs" onClick={() => setWanted(true)} data-testid="why-ask">
          Try one unit more and less on each device
        </Button>
      ) : why.error && !why.stale ? (
        <Text size="sm" c="dimmed">
          {sentence(why.error)}
        </Text>
      ) : (
        <div className={why.stale ? classes.stale : undefined}>
          {why.data?.devices.map((row) => (
            <div key={row.device} className={classes.why} data-testid={`why-${row.device}`}>
              <span>
                <b>{row.device}</b>
                <Badge size="xs" variant="light" color={COLORS[row.binding]}>
                  {row.binding === 'none' ? 'free' : row.binding}
                </Badge>
              </span>
              <small>{row.sentence}</small>
            </div>
          ))}
          {why.data && why.data.devices.length === 0 && (
            <Text size="sm" c="dimmed">
              {why.data.sentence}
            </Text>
          )}
          {why.data?.figure_s != null && (
            <Text size="xs" c="dimmed" mt={8}>
              Tried by prediction against {seconds(why.data.figure_s)}{' '}
              {why.data.objective === 'per_token_s' ? 'per token' : 'for the first result'}.
            </Text>
          )}
        </div>
      )}
    </Card>
  );
}
