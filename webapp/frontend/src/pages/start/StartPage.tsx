import { Box, Skeleton, Text, Title } from '@mantine/core';
import { useRuns, useSession, useShowcases } from '@/api/queries';
import { useDocumentTitle } from '@/components/Page';
import { TourOffer } from '@/tour/TourOffer';
import { demoOf } from './demo';
import { DemoRace } from './DemoRace';
import { ShowcaseCard } from './ShowcaseCard';
import { Showcases } from './Showcases';
import classes from './start.module.css';
import { Workbench } from './Workbench';

const STEPS = [
  ['Draw', 'a cluster: devices with their speed and memory, switches, links with rate and delay.'],
  ['Run', 'a real transformer on it: one process per device, real sockets, links shaped to what you drew.'],
  ['Change', 'rates, links and devices while it runs, and see tokens, layers and timelines answer.'],
  ['Keep', 'every report, with its prediction beside the measurement, and compare what strategies do.'],
] as const;

/** The page /: what EdgeLoom does and a first run; once there are runs, what goes on and what was last done. */
export function StartPage() {
  useDocumentTitle('Start');
  const runs = useRuns();
  if (runs.data && runs.data.length > 0) return <Workbench runs={runs.data} />;
  if (runs.isPending) return null;
  return (
    <div className={classes.page}>
      <Hero />
      <DemoRace />
      <Showcases />
    </div>
  );
}

function Hero() {
  const me = useSession().data?.user;
  const demo = demoOf(useShowcases().data);
  return (
    <div className={classes.hero}>
      <div>
        <Title order={1} fz="clamp(23px, 6vw, 34px)" lh={1.15} mb={10} style={{ letterSpacing: '-0.02em' }}>
          Transformers on edge clusters,
          <br />
          emulated and measured
        </Title>
        <Text c="dimmed" maw={520} mb={26}>
          Does a language model run faster on several small boards than on one, and which way of splitting it
          suits them? Here is a first run: start it, then slow a link or drop a board while it writes.
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
      {demo ? <ShowcaseCard showcase={demo} size="large" /> : <Skeleton height={420} radius="md" />}
    </div>
  );
}
