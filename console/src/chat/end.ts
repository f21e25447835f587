// Follows the end of the page as it grows, but only while the reader is there.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** So near counts as at the end. */
const NEAR = 60;

function atEnd(): boolean {
  const page = document.documentElement;
  return page.scrollHeight - page.scrollTop - innerHeight < NEAR;
}

/** `what` changes as the page grows; `subject` when it is another page altogether, which is shown from its end. */
export function useEnd(what: unknown, subject: string): { away: boolean; toEnd: () => void } {
  const [away, setAway] = useState(false);
  const following = useRef(true);
  const toEnd = () => {
    following.current = true;
    setAway(false);
    scrollTo({ top: document.documentElement.scrollHeight });
  };
  useEffect(() => {
    following.current = true;
    setAway(false);
  }, [subject]);
  useEffect(() => {
    let before = scrollY;
    const look = () => {
      // Growing below moves nothing; only who scrolls up leaves the end.
      if (atEnd()) following.current = true;
      else if (scrollY < before - 2) following.current = false;
      before = scrollY;
      setAway(!following.current);
    };
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, []);
  useLayoutEffect(() => {
    if (following.current) scrollTo({ top: document.documentElement.scrollHeight });
    else setAway(!atEnd());
  }, [what]);
  return { away, toEnd };
}
