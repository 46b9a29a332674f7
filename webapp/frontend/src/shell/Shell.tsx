import { Center, Loader } from '@mantine/core';
import { type ReactNode, Suspense } from 'react';
import { sentence } from '@/api/client';
import { useSession } from '@/api/queries';
import { ErrorPanel } from '@/components/ErrorPanel';
import { later } from '@/components/later';
import { usePage } from '@/components/navigation';
import { Tour } from '@/tour/Tour';
import { Header } from './Header';
import { HealthBanner } from './HealthBanner';
import { PageErrors } from './PageErrors';
import classes from './Shell.module.css';

const LoginPage = later(async () => (await import('@/pages/login/LoginPage')).LoginPage);

interface Props {
  /** Where the manual explains the page of an address. */
  helpFor: (address: string) => string;
  children: ReactNode;
}

/** The frame of every page. Shows the login page first if nobody is logged in. */
export function Shell({ helpFor, children }: Props) {
  const session = useSession();
  const path = usePage();
  if (session.isPending) return <Waiting />;
  if (session.isError) {
    return (
      <Center mih="100vh" p="xl">
        <ErrorPanel
          title="EdgeLoom is not reachable"
          message={sentence(session.error)}
          onRetry={() => session.refetch()}
        />
      </Center>
    );
  }
  if (!session.data)
    return (
      <Suspense fallback={<Waiting />}>
        <LoginPage />
      </Suspense>
    );
  return (
    <div className={classes.shell}>
      <Header session={session.data} help={helpFor(path)} />
      <HealthBanner />
      <Tour user={session.data.user} />
      <main className={classes.main}>
        <PageErrors path={path}>
          <Suspense fallback={<Waiting />}>{children}</Suspense>
        </PageErrors>
      </main>
    </div>
  );
}

function Waiting() {
  return (
    <Center mih="60vh">
      <Loader type="dots" />
    </Center>
  );
}
