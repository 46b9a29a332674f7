import { Button, Progress, Text, Tooltip } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import type { FleetWorker } from '@/api/types';
import { ago, duration } from '@/format/units';
import { calibrationNow } from './worker';

/** The calibration of a worker's machine: which one it has, since when, and how far a new one is. */
export function Calibration({ worker, now }: { worker: FleetWorker; now: number }) {
  const going = calibrationNow(worker);
  return (
    <>
      {worker.calibration ? (
        <Tooltip label={worker.calibrated} multiline maw={320}>
          <Text size="sm" ff="monospace" data-testid="calibration">
            {worker.calibration}
          </Text>
        </Tooltip>
      ) : (
        <Text size="sm" c="dimmed" data-testid="calibration">
          not yet
        </Text>
      )}
      {going ? (
        <div data-testid="calibrating">
          <Progress value={going.share * 100} size="sm" mt={4} aria-label="Share of the calibration" />
          <Text size="xs" c="dimmed" mt={4}>
            {going.text}
          </Text>
        </div>
      ) : (
        worker.calibrated_at > 0 && (
          <Text size="xs" c="dimmed">
            {ago(new Date(worker.calibrated_at * 1000).toISOString(), now)}
          </Text>
        )
      )}
      {worker.calibration_caution && (
        <Text size="xs" c="var(--loom-warn)" mt={2} maw={320}>
          {worker.calibration_caution}
        </Text>
      )}
      {worker.calibration_failure && (
        <Text size="xs" c="var(--loom-bad)" mt={2}>
          {worker.calibration_failure}
        </Text>
      )}
    </>
  );
}

/** Asks an emulating worker to calibrate its machine, or stops that. */
export function CalibrateButton({ worker }: { worker: FleetWorker }) {
  const change = useChange('fleet', (action: string) => api.post(action, { worker: worker.worker }));
  const going = worker.calibration_wanted || worker.calibrating != null;
  const takes = duration(worker.calibration_takes_s);
  return (
    <Tooltip
      multiline
      maw={300}
      label={
        going
          ? 'End it; the machine keeps the calibration that it has'
          : `Measure this machine while no run goes on there: about ${takes} as busy as it is now`
      }
    >
      <Button
        size="compact-xs"
        variant="default"
        disabled={!going && worker.refused !== ''}
        loading={change.isPending}
        onClick={() =>
          change.mutate(going ? '/fleet/calibrate/stop' : '/fleet/calibrate', {
            onError: (error) => notifications.show({ color: 'red', message: sentence(error) }),
          })
        }
        data-testid={going ? 'stop-calibrating' : 'calibrate'}
      >
        {going ? 'Stop calibrating' : `Calibrate, ${takes}`}
      </Button>
    </Tooltip>
  );
}
