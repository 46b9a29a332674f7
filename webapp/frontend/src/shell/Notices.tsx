import { Suspense, useState } from 'react';
import { later } from '@/components/later';
import { usePage } from '@/components/navigation';

const NoticeList = later(async () => (await import('./NoticeList')).NoticeList);

/** What pages tell in passing, such as "Saved". The start page tells nothing: only other pages load the list. */
export function Notices() {
  const path = usePage();
  const [needed, setNeeded] = useState(false);
  if (!needed && path !== '/') setNeeded(true);
  return (
    needed && (
      <Suspense>
        <NoticeList />
      </Suspense>
    )
  );
}
