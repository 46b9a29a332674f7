import { Center, Loader } from '@mantine/core';
import { Suspense } from 'react';
import { Outlet } from 'react-router';
import { sentence } from '@/api/client';
import { useSession } from '@/api/queries';
import { ErrorPanel } from '@/components/ErrorPanel';
import { LoginPage } from '@/pages/login/LoginPage';
import { Tour } from '@/tour/Tour';
import { Header } from './Header';
import { HealthBanner } from './HealthBanner';
import classes from './Shell.module.css';

/** The frame of every page. Shows the login page first if nobody is logged in. */
export function Shell() {
  const session = useSession();
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
  if (!session.data) return <LoginPage />;
  return (
    <div className={classes.shell}>
      <Header session={session.data} />
      <HealthBanner />
      <Tour user={session.data.user} />
      <main className={classes.main}>
        <Suspense fallback={<Waiting />}>
          <Outlet />
        </Suspense>
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
