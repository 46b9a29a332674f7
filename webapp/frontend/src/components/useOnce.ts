import { useState } from 'react';

/** Whether `is` has been true since the component was there: what has been shown once stays. */
export function useOnce(is: boolean): boolean {
  const [was, setWas] = useState(is);
  if (is && !was) setWas(true);
  return is || was;
}
