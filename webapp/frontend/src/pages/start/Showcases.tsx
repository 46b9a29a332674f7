import { SimpleGrid, Skeleton, Text, Title } from '@mantine/core';
import { sentence } from '@/api/client';
import { useMayWrite, useShowcases } from '@/api/queries';
import { ErrorPanel } from '@/components/ErrorPanel';
import { demoOf } from './demo';
import { ShowcaseCard } from './ShowcaseCard';

/** The first run where it is wanted, reasons to distribute with what to expect, and the methods' own in brief. */
export function Showcases({ withDemo = false }: { withDemo?: boolean }) {
  const { data, error } = useShowcases();
  const mayWrite = useMayWrite();
  if (error) return <ErrorPanel message={sentence(error)} />;
  if (!data) return <Skeleton height={330} radius="md" />;
  const demo = withDemo ? demoOf(data) : undefined;
  const shown = [...(demo ? [demo] : []), ...data.filter(({ place }) => place === 'reason')];
  return (
    <>
      <section>
        <Title order={2} fz={18} mb="sm">
          Why run a model on several devices
        </Title>
        <SimpleGrid cols={{ base: 1, sm: 2, lg: shown.length }} spacing="md">
          {shown.map((showcase) => (
            <ShowcaseCard key={showcase.name} showcase={showcase} size="usual" />
          ))}
        </SimpleGrid>
      </section>
      <section>
        <Title order={2} fz={18} mb={4}>
          Methods
        </Title>
        <Text size="sm" c="dimmed" mb="sm" maw={720}>
          For each paper’s method, a cluster that shows what it is good at, and other methods’ runs to
          compare.{mayWrite ? '' : ' Starting one needs the role operator: ask an administrator.'}
        </Text>
        <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="md">
          {data
            .filter(({ place }) => place === 'method')
            .map((showcase) => (
              <ShowcaseCard key={showcase.name} showcase={showcase} size="brief" />
            ))}
        </SimpleGrid>
      </section>
    </>
  );
}
