import { Anchor, Box, Group, Text } from '@mantine/core';
import { Link } from '@/components/navigation';
import { useHealth } from '@/api/queries';
import { complaint, heldText, waitingText } from './health';

/** A dot for the state of the server, and a link to the run that is being emulated. */
export function HealthDot() {
  const { data, error } = useHealth();
  const bad = complaint(data, error);
  const busy = data?.busy_run ?? null;
  const held = data ? heldText(data) : '';
  const starting = (!bad && data?.starting) ?? false;
  const color = bad ? 'var(--loom-bad)' : busy || starting || held ? 'var(--loom-warn)' : 'var(--loom-good)';
  const waits = data ? waitingText(data) : '';
  const waiting = waits && `, ${waits}`;
  return (
    <Group
      title={
        bad ??
        (starting
          ? 'The workers are starting: what you ask for waits for them'
          : held
            ? `${held}${waiting}`
            : busy
              ? `The emulator is busy with run ${busy}${waiting}`
              : `All services answer; no run goes on${waiting}`)
      }
      gap={8}
      wrap="nowrap"
      mr="xs"
      data-testid="health"
      data-state={bad ? 'bad' : busy || starting || held ? 'busy' : 'idle'}
    >
      <span style={{ width: 9, height: 9, borderRadius: 9, background: color }} />
      {busy ? (
        <Anchor component={Link} to={`/runs/${busy}`} size="sm">
          {held ? `Run ${busy} waits` : `Run ${busy}`}
          {waiting && <Wide>{waiting}</Wide>}
        </Anchor>
      ) : (
        <Text size="sm" c="dimmed">
          {bad ? (
            'Not ready'
          ) : starting ? (
            'Starting'
          ) : held ? (
            'Machine in use'
          ) : waits ? (
            <Counts>{waits}</Counts>
          ) : (
            'Idle'
          )}
        </Text>
      )}
    </Group>
  );
}

/** Only where a window has the room beside the navigation. */
function Wide({ children }: { children: string }) {
  return (
    <Box component="span" visibleFrom="sm">
      {children}
    </Box>
  );
}

/** What waits, in full where there is room. */
function Counts({ children }: { children: string }) {
  return (
    <>
      <Wide>{children}</Wide>
      <Box component="span" hiddenFrom="sm">
        Waiting
      </Box>
    </>
  );
}
