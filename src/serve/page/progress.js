// How far the indexing of photos is, in words.
import { count, plural } from './dom.js';

export function progressText({ state, photos, done, ready, problem }) {
  const found = `${count(ready)} searchable now`;
  if (problem) return `${problem}; ${found}`;
  if (state === 'indexing')
    return `indexing: ${count(done)} of ${count(photos)} photos${ready ? ', searchable now' : ''}`;
  if (state === 'elsewhere') return `another process is indexing; ${found}`;
  return state === 'looking' ? `looking for photos; ${found}` : plural(ready, 'photo', 'photos');
}
