import { Box, Text, Title } from '@mantine/core';
import { useRuns, useSession } from '@/api/queries';
import { useDocumentTitle } from '@/components/Page';
import { TourOffer } from '@/tour/TourOffer';
import { Demo } from './Demo';
import { Showcases } from './Showcases';
import classes from './start.module.css';
import { Workbench } from './Workbench';

const STEPS = [
  ['Draw', 'a cluster: devices with their speed and memory, switches, links with rate and delay.'],
  ['Run', 'a real transformer on it: one process per device, real sockets, links shaped to what you drew.'],
  ['Change', 'rates, links and devices while it runs, and see tokens, layers and timelines answer.'],
  ['Keep', 'every report, with its prediction beside the measurement, and compare what strategies do.'],
] as const;

/** The page /: what EdgeLoom does and a demo cluster; once there are runs, what goes on and what was last done. */
export function StartPage() {
  useDocumentTitle('Start');
  const runs = useRuns();
  if (runs.data && runs.data.length > 0) return <Workbench runs={runs.data} />;
  if (runs.isPending) return null;
  return (
    <div className={classes.page}>
      <Hero />
      <Showcases />
    </div>
  );
}

function Hero() {
  const me = useSession().data?.user;
  return (
    <div className={classes.hero}>
      <div>
        <Title order={1} fz={34} lh={1.15} mb={10} style={{ letterSpacing: '-0.02em' }}>
          Transformers on edge clusters,
          <br />
          emulated and measured
        </Title>
        <Text c="dimmed" maw={520} mb={26}>
          How fast does a language model run on three small boards and a slow switch, and which way of
          splitting it suits them? Here is a cluster ready to try.
        </Text>
        <ol className={classes.steps}>
          {STEPS.map(([verb, rest]) => (
            <li key={verb}>
              <Text size="sm">
                <b>{verb}</b>{' '}
                <Text span inherit c="dimmed">
                  {rest}
                </Text>
              </Text>
            </li>
          ))}
        </ol>
        {me && (
          <Box mt="lg">
            <TourOffer user={me} />
          </Box>
        )}
      </div>
      <Demo />
    </div>
  );
}
